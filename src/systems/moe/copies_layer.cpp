#include "systems/moe/copies_layer.hpp"

#include "layers/rows.hpp"
#include "sim/gpu/tile.hpp"

#include <algorithm>
#include <cmath>

namespace moehub::systems {

Bytes bytes_of_counts(const MoeLayer& layer, GpuId peer) {
    return kCount * (1 + static_cast<Bytes>(layer.experts_of(peer).size()));
}

Bytes bytes_of_choices(const MoeLayer& layer) {
    constexpr Bytes kChoice = 12;
    return kCount + kChoice * layer.top_k();
}

Lanes lanes_of(const MoeLayer& layer, GpuId gpu, int channels) {
    Lanes lanes(static_cast<std::size_t>(channels), std::vector<Rows>(layer.gpus.count()));
    const std::vector<Rows> rows = rows_by_peer(layer, gpu);
    for (std::size_t peer = 0; peer < rows.size(); ++peer) {
        for (const CarriedRow& row : rows[peer]) {
            const std::uint64_t token = row.token - layer.first_token(gpu);
            lanes[token * static_cast<std::uint64_t>(channels) / layer.tokens(gpu)][peer].push_back(
                row);
        }
    }
    return lanes;
}

Process reorder_copies(MoeLayer& layer, GpuId gpu, const std::vector<Rows>& received, bool out) {
    if (!layer.options.compute) co_return;
    std::int64_t copies = 0;
    for (const Rows& some : received) copies += copies_in(some);
    const std::int64_t rows = count_rows(received);
    co_await layer.host(gpu).launch(1);
    if (rows == 0) co_return;
    const auto sent = static_cast<double>(out ? layer.dispatch_bytes() : layer.combine_bytes());
    const double wide = static_cast<double>(rows) * expert_bytes(layer);
    const double narrow = static_cast<double>(copies) * sent;
    const Traffic expand{.read = narrow, .written = wide};
    const Traffic sum{.read = static_cast<double>(rows * layer.row_bytes()), .written = narrow};
    co_await run_stream(layer.card(gpu), out ? expand : sum,
                        out ? KernelName::reorder : KernelName::weighted_sum);
}

namespace {

Ps times(double count, Ps each) {
    return std::llround(count * static_cast<double>(each));
}

}  // namespace

ChunkedExchange::ChunkedExchange(MoeLayer& layer, const char* name, bool sums)
    : layer_(layer),
      sums_(sums),
      channels_(std::max(1, layer.system.communication_sms / 2)),
      mail_(layer.gpus, name, static_cast<std::size_t>(channels_)),
      expected_(layer.gpus.count(), std::vector<Expected>(static_cast<std::size_t>(channels_))),
      done_(layer.gpus.add_counter("SMs of a chunked exchange")) {}

std::vector<std::int64_t> ChunkedExchange::announcement(GpuId to, const Lanes& lanes) const {
    std::vector<std::int64_t> copies;
    for (const std::vector<Rows>& by_peer : lanes) copies.push_back(copies_in(by_peer[to]));
    return copies;
}

void ChunkedExchange::expect(GpuId gpu, const std::vector<std::int64_t>& announced) {
    const std::int64_t chunk = layer_.system.chunk_rows;
    for (std::size_t channel = 0; channel < announced.size(); ++channel) {
        expected_[gpu][channel].copies += announced[channel];
        expected_[gpu][channel].messages += (announced[channel] + chunk - 1) / chunk;
    }
}

void ChunkedExchange::expect_return(GpuId from, const Lanes& lanes) {
    for (std::uint32_t to = 0; to < layer_.gpus.count(); ++to) {
        expect(from, announcement(static_cast<GpuId>(to), lanes));
    }
}

double ChunkedExchange::tokens_of(GpuId gpu, std::size_t channel) const {
    // As lanes_of divides them.
    const auto all = static_cast<std::int64_t>(layer_.tokens(gpu));
    const auto before = [&](std::int64_t c) { return (c * all + channels_ - 1) / channels_; };
    const auto own = static_cast<std::int64_t>(channel);
    return static_cast<double>(before(own + 1) - before(own));
}

/// The warps that send to one peer.
Process ChunkedExchange::send(GpuId gpu, std::size_t channel, std::size_t peer, Rows rows,
                              Bytes bytes) {
    sim::Endpoint& endpoint = layer_.endpoint(gpu);
    const Exchange& rates = layer_.card(gpu).gpu.exchange;
    const auto copies = static_cast<double>(copies_in(rows));
    const Ps looking = sums_ ? 0 : times(tokens_of(gpu, channel), rates.push_token);
    const Ps row =
        rates.push_row + to_ps(static_cast<double>(bytes) * layer_.gpus.count() / rates.push);
    if (copies == 0) co_await endpoint.delay(looking);
    std::vector<Rows> chunks = cut(rows, layer_.system.chunk_rows);
    for (Rows& chunk : chunks) {
        const std::int64_t some = copies_in(chunk);
        const double share = static_cast<double>(some) / copies;
        co_await endpoint.delay(some * row + times(share, looking));
        mail_.send(gpu, static_cast<GpuId>(peer), channel, std::move(chunk), bytes * some);
    }
    endpoint.increase(done_);
}

/// Chunks are emptied one by one as they come; all but each queue's last have the same size.
Process ChunkedExchange::receive(GpuId gpu, std::size_t channel, Bytes bytes) {
    sim::Endpoint& endpoint = layer_.endpoint(gpu);
    const Exchange& rates = layer_.card(gpu).gpu.exchange;
    const Expected expected = expected_[gpu][channel];
    const auto messages = static_cast<double>(std::max<std::int64_t>(1, expected.messages));
    const double loaded = static_cast<double>(bytes * expected.copies);
    const double stored = static_cast<double>(bytes) * tokens_of(gpu, channel);
    const Ps all = sums_ ? to_ps(loaded / rates.sum_load) + to_ps(stored / rates.sum_store)
                         : to_ps(loaded / rates.push);
    for (std::int64_t message = 1; message <= expected.messages; ++message) {
        co_await mail_.arrived(gpu, channel, message);
        co_await endpoint.delay(times(1 / messages, all));
    }
    if (sums_ && stored > 0) {  // the last token's warp is alone
        const double copies = loaded / stored;
        co_await endpoint.delay(to_ps(static_cast<double>(bytes) / rates.first_store) +
                                to_ps(static_cast<double>(bytes) * copies / rates.first_load));
    }
    endpoint.increase(done_);
}

Process ChunkedExchange::run(GpuId gpu, Lanes lanes, Bytes bytes) {
    sim::Endpoint& endpoint = layer_.endpoint(gpu);
    sim::Card& card = layer_.card(gpu);
    const Communicating communicating(card);
    const int sms = std::min(2 * channels_, card.gpu.sms);
    const KernelName kernel = sums_ ? KernelName::combine : KernelName::dispatch;
    card.blocks.hold(sms, kernel);
    for (std::size_t channel = 0; channel < lanes.size(); ++channel) {
        for (std::size_t peer = 0; peer < lanes[channel].size(); ++peer) {
            endpoint.spawn("sending warps",
                           send(gpu, channel, peer, std::move(lanes[channel][peer]), bytes));
        }
        endpoint.spawn("receiving SM", receive(gpu, channel, bytes));
    }
    co_await endpoint.until(done_, channels_ * (std::int64_t{layer_.gpus.count()} + 1));
    card.blocks.release(sms, kernel);
}

std::vector<Rows> ChunkedExchange::received(GpuId gpu) {
    std::vector<Rows> buffers;
    for (int channel = 0; channel < channels_; ++channel)
        buffers.push_back(mail_.take(gpu, static_cast<std::size_t>(channel)));
    return buffers;
}

}  // namespace moehub::systems
