#include "systems/moe/forwarded.hpp"

#include "layers/rows.hpp"

#include <algorithm>
#include <cmath>

namespace moehub::systems {
namespace {

/// The first of a GPU's so many tokens that belongs to a channel.
std::uint32_t first_of(std::uint32_t tokens, std::size_t channel, int channels) {
    const auto all = static_cast<std::uint64_t>(channels);
    return static_cast<std::uint32_t>((channel * tokens + all - 1) / all);
}

}  // namespace

std::uint32_t ForwardedExchange::first_token(GpuId home, std::size_t channel) const {
    return layer_.first_token(home) + first_of(layer_.tokens(home), channel, channels_);
}

ForwardedExchange::Chunk ForwardedExchange::chunk_of(std::uint32_t token,
                                                     std::size_t channel) const {
    const GpuId home = layer_.home_of(token);
    return {node(home),
            std::int64_t{token - first_token(home, channel)} / layer_.system.node_chunk_rows};
}

/// Cuts the rows of one home's channel, which stand in the order of tokens, by their chunk.
std::vector<Rows> ForwardedExchange::cut_by_chunk(Rows rows, std::size_t channel) const {
    std::vector<Rows> chunks;
    for (const CarriedRow& row : rows) {
        if (chunks.empty() ||
            chunk_of(row.token, channel) != chunk_of(chunks.back().back().token, channel))
            chunks.emplace_back();
        chunks.back().push_back(row);
    }
    return chunks;
}

/// Rows of a token stay in their order.
void ForwardedExchange::sort_by_token(Rows& rows) {
    std::stable_sort(rows.begin(), rows.end(),
                     [](const CarriedRow& a, const CarriedRow& b) { return a.token < b.token; });
}

Rows ForwardedExchange::rows_for_node(const std::vector<Rows>& by_peer,
                                      std::uint32_t of_node) const {
    Rows rows;
    for (std::uint32_t rail = 0; rail < per_node_; ++rail) {
        const Rows& some = by_peer[of_node * per_node_ + rail];
        rows.insert(rows.end(), some.begin(), some.end());
    }
    sort_by_token(rows);
    return rows;
}

std::vector<std::int64_t> ForwardedExchange::announcement(GpuId from, GpuId to,
                                                          const Lanes& lanes) const {
    std::vector<std::int64_t> counts;
    for (const std::vector<Rows>& by_peer : lanes) counts.push_back(copies_in(by_peer[to]));
    if (on_rail(from, node(to)) != to) return counts;
    for (const std::vector<Rows>& by_peer : lanes)
        counts.push_back(copies_in(rows_for_node(by_peer, node(to))));
    return counts;
}

void ForwardedExchange::expect(GpuId gpu, const std::vector<std::int64_t>& announced) {
    const auto channels = static_cast<std::size_t>(channels_);
    for (std::size_t i = 0; i < announced.size(); ++i) {
        Channel& one = channel(gpu, i % channels);
        (i < channels ? one.copies : one.passing) += announced[i];
    }
}

void ForwardedExchange::expect_return(GpuId from, const Lanes& lanes) {
    for (std::size_t number = 0; number < lanes.size(); ++number) {
        for (std::uint32_t of_node = 0; of_node < nodes_; ++of_node)
            channel(from, number).sums += copies_in(rows_for_node(lanes[number], of_node));
    }
}

int ForwardedExchange::sms_of(GpuId gpu) const {
    return std::min(sms_.per_channel * channels_, layer_.card(gpu).gpu.sms);
}

/// A queue pair takes bytes one after the other; returns how long these wait for it.
Ps ForwardedExchange::reserve(const Crossing& way, Bytes bytes) {
    if (layer_.system.qp_rate == 0 || node(way.from) == node(way.to)) return 0;
    Ps& busy = paced_[way.from][node(way.to)];
    const Ps now = layer_.endpoint(way.from).now();
    busy = std::max(busy, now);
    const Ps wait = busy - now;
    busy += std::llround(static_cast<double>(bytes) / layer_.system.qp_rate * 1e12);
    return wait;
}

namespace {

Ps time_of(Bytes bytes, double rate) {
    return std::llround(static_cast<double>(bytes) / rate * 1e12);
}

/// How long SMs need that do several things at once.
struct Slowed {
    double share;
    Ps operator()(Ps time) const { return std::llround(static_cast<double>(time) / share); }
};

}  // namespace

ForwardingSms warps_through_queues(const layers::MoeLayer& layer) {
    const Exchange& rates = layer.input.machine.gpu.exchange;
    const Slowed slowed{layer.system.copy_share};
    const int lanes = layer.input.machine.gpus_per_node;
    const Bytes out = layer.dispatch_bytes();
    const Bytes back = layer.combine_bytes();
    ForwardingSms sms;
    sms.per_channel = 2;
    sms.lanes = lanes;
    sms.queues = true;
    sms.send_token = slowed(rates.push_token);
    sms.send_row = slowed(time_of(out, rates.push));
    sms.forward_token = slowed(rates.push_token);
    sms.forward_row = slowed(rates.push_row + time_of(lanes * out, rates.push));
    sms.receive_row = slowed(time_of(out, rates.push));
    sms.contribute_row = slowed(rates.push_row + time_of(lanes * back, rates.push));
    sms.collect_row = slowed(time_of(back, rates.sum_load));
    sms.collect_sum = slowed(time_of(back, rates.sum_store));
    sms.add_row = slowed(time_of(back, rates.sum_load));
    return sms;
}

ForwardingSms copy_engines(const layers::MoeLayer& layer) {
    const Exchange& rates = layer.input.machine.gpu.exchange;
    const Slowed slowed{layer.system.copy_share};
    const Bytes out = layer.dispatch_bytes();
    const Bytes back = layer.combine_bytes();
    ForwardingSms sms;
    sms.send_row = rates.post_row;
    sms.forward_row = slowed(rates.copy_row + time_of(out, rates.push));
    // Who adds up fetches as fast as its SMs do; who gives is as fast, since all give as they get.
    sms.contribute_row = slowed(time_of(back, rates.copy_sum));
    sms.return_row = rates.post_row;
    if (layer.input.machine.nodes > 1) sms.add_row = slowed(time_of(back, rates.copy_sum));
    return sms;
}

}  // namespace moehub::systems
