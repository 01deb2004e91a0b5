#include "systems/moe/chunked.hpp"

#include "layers/copies.hpp"

#include <algorithm>
#include <cmath>

namespace moehub::systems {

ChunkedExchange::ChunkedExchange(MoeLayer& layer, const char* name)
    : layer_(layer),
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

void ChunkedExchange::expect_known(const Lanes& lanes) {
    for (std::uint32_t to = 0; to < layer_.gpus.count(); ++to) {
        expect(static_cast<GpuId>(to), announcement(static_cast<GpuId>(to), lanes));
    }
}

void ChunkedExchange::expect_return(GpuId from, const Lanes& lanes) {
    for (std::uint32_t to = 0; to < layer_.gpus.count(); ++to) {
        expect(from, announcement(static_cast<GpuId>(to), lanes));
    }
}

Ps ChunkedExchange::copying(double bytes) const {
    if (layer_.system.sm_copy <= 0) return 0;
    return std::llround(bytes / layer_.system.sm_copy * 1e12);
}

/// All senders together fill no more of the link than their flow control allows; what they send to
/// their own GPU takes its turn.
Ps ChunkedExchange::sending(double bytes) const {
    const double others = static_cast<double>(layer_.gpus.count() - 1) / layer_.gpus.count();
    const double link = layer_.system.link_share * layer_.input.machine.link.bandwidth;
    const double paced = bytes * others * channels_ / link;
    return std::max(copying(bytes), static_cast<Ps>(std::llround(paced * 1e12)));
}

Process ChunkedExchange::send(GpuId gpu, std::size_t channel, std::vector<Rows> lanes,
                              Bytes bytes) {
    sim::Endpoint& endpoint = layer_.endpoint(gpu);
    std::vector<std::vector<Rows>> chunks;
    std::size_t most = 0;
    for (const Rows& rows : lanes) {
        chunks.push_back(cut(rows, layer_.system.chunk_rows));
        most = std::max(most, chunks.back().size());
    }
    for (std::size_t i = 0; i < most; ++i) {
        for (std::size_t step = 1; step <= lanes.size(); ++step) {
            const std::size_t peer = (gpu + channel + step) % lanes.size();
            if (i >= chunks[peer].size()) continue;
            const Bytes size = bytes * copies_in(chunks[peer][i]);
            co_await endpoint.delay(sending(static_cast<double>(size)));
            mail_.send(gpu, static_cast<GpuId>(peer), channel, std::move(chunks[peer][i]), size);
        }
    }
    endpoint.increase(done_);
}

/// Chunks are emptied one by one as they come; all but each queue's last have the same size.
Process ChunkedExchange::receive(GpuId gpu, std::size_t channel, Bytes bytes) {
    sim::Endpoint& endpoint = layer_.endpoint(gpu);
    const Expected expected = expected_[gpu][channel];
    const double chunk = static_cast<double>(bytes * expected.copies) /
                         static_cast<double>(std::max<std::int64_t>(1, expected.messages));
    for (std::int64_t message = 1; message <= expected.messages; ++message) {
        co_await mail_.arrived(gpu, channel, message);
        co_await endpoint.delay(copying(chunk));
    }
    endpoint.increase(done_);
}

Process ChunkedExchange::run(GpuId gpu, Lanes lanes, Bytes bytes) {
    sim::Endpoint& endpoint = layer_.endpoint(gpu);
    sim::Card& card = layer_.card(gpu);
    const Communicating communicating(card);
    const int sms = std::min(2 * channels_, card.gpu.sms);
    card.blocks.hold(sms);
    for (std::size_t channel = 0; channel < lanes.size(); ++channel) {
        endpoint.spawn("sending SM", send(gpu, channel, std::move(lanes[channel]), bytes));
        endpoint.spawn("receiving SM", receive(gpu, channel, bytes));
    }
    co_await endpoint.until(done_, 2 * channels_);
    card.blocks.release(sms);
}

std::vector<Rows> ChunkedExchange::received(GpuId gpu) {
    std::vector<Rows> buffers;
    for (int channel = 0; channel < channels_; ++channel)
        buffers.push_back(mail_.take(gpu, static_cast<std::size_t>(channel)));
    return buffers;
}

}  // namespace moehub::systems
