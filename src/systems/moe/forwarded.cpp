#include "systems/moe/forwarded.hpp"

#include "layers/copies.hpp"

#include <algorithm>
#include <cmath>

namespace moehub::systems {
namespace {

constexpr Bytes kFlag = 8;  ///< bytes that tell of a chunk

/// Of the GPU's own rank only: the first of so many tokens that belongs to a channel.
std::uint32_t first_of(std::uint32_t tokens, std::size_t channel, int channels) {
    const auto all = static_cast<std::uint64_t>(channels);
    return static_cast<std::uint32_t>((channel * tokens + all - 1) / all);
}

}  // namespace

ForwardedExchange::ForwardedExchange(MoeLayer& layer, ForwardingSms (*sms)(const MoeLayer&))
    : layer_(layer),
      per_node_(static_cast<std::uint32_t>(layer.input.machine.gpus_per_node)),
      nodes_(static_cast<std::uint32_t>(layer.input.machine.nodes)),
      sms_(sms(layer)),
      channels_(std::max(1, layer.system.communication_sms / sms_.per_channel)),
      crossing_(layer.gpus, "chunks from other nodes", 2 * static_cast<std::size_t>(channels_)),
      inside_(layer.gpus, "rows sent on", static_cast<std::size_t>(channels_)),
      collected_(layer.gpus, "results of a node", static_cast<std::size_t>(channels_)),
      home_(layer.gpus, "sums of nodes", static_cast<std::size_t>(channels_)),
      ready_(layer.gpus.add_counters("chunks to send on", static_cast<std::size_t>(channels_))),
      done_(layer.gpus.add_counter("SMs of a forwarded exchange")),
      targets_(static_cast<std::size_t>(layer.rows())),
      state_(layer.gpus.count(), std::vector<Channel>(static_cast<std::size_t>(channels_))),
      paced_(layer.gpus.count(), std::vector<Ps>(nodes_)) {
    for (std::uint32_t gpu = 0; gpu < layer.gpus.count(); ++gpu) {
        for (const Row& row : layer.rows_of(static_cast<GpuId>(gpu)))
            targets_[std::size_t{row.token} * layer.top_k() + row.choice] =
                layer.gpu_of(row.rank, 0);
    }
}

std::uint32_t ForwardedExchange::first_token(GpuId home, std::size_t channel) const {
    return layer_.first_token(home) + first_of(layer_.tokens(home), channel, channels_);
}

ForwardedExchange::Chunk ForwardedExchange::chunk_of(std::uint32_t token,
                                                     std::size_t channel) const {
    const GpuId home = layer_.home_of(token);
    return {node(home),
            std::int64_t{token - first_token(home, channel)} / layer_.system.node_chunk_rows};
}

/// Of one home's channel, in the order of tokens.
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

Rows ForwardedExchange::rows_for_node(const std::vector<Rows>& by_peer,
                                      std::uint32_t of_node) const {
    Rows rows;
    for (std::uint32_t rail = 0; rail < per_node_; ++rail) {
        const Rows& some = by_peer[of_node * per_node_ + rail];
        rows.insert(rows.end(), some.begin(), some.end());
    }
    std::stable_sort(rows.begin(), rows.end(),
                     [](const CarriedRow& a, const CarriedRow& b) { return a.token < b.token; });
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

void ForwardedExchange::hold(GpuId gpu) {
    sim::Card& card = layer_.card(gpu);
    card.blocks.hold(std::min(sms_.per_channel * channels_, card.gpu.sms));
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

/// One chunk, piece by piece, and the flag behind it.
Process ForwardedExchange::cross(Crossing way, Rows rows, Ps each) {
    sim::Endpoint& endpoint = layer_.endpoint(way.from);
    std::vector<Rows> pieces = cut(rows, layer_.system.chunk_rows);
    for (Rows& piece : pieces) {
        const std::int64_t copies = copies_in(piece);
        co_await endpoint.delay(copies * each + reserve(way, copies * way.bytes));
        crossing_.send(way.from, way.to, way.channel, std::move(piece), copies * way.bytes);
    }
    crossing_.tell(way.from, way.to, way.channel + static_cast<std::size_t>(channels_),
                   {chunk_of(rows.front().token, way.channel).second, copies_in(rows)}, kFlag);
}

/// The channel's own tokens, chunk after chunk, other nodes before the own, unless its rows are
/// sent on from where they lie.
Process ForwardedExchange::send(GpuId gpu, std::size_t number, std::vector<Rows> by_peer,
                                Bytes bytes) {
    sim::Endpoint& endpoint = layer_.endpoint(gpu);
    std::map<std::int64_t, std::vector<std::pair<GpuId, Rows>>> chunks;
    const std::uint32_t first = sms_.queues ? 1 : 0;
    for (std::uint32_t step = 0; step < nodes_; ++step) {
        const std::uint32_t of_node = (node(gpu) + first + step) % nodes_;
        std::vector<Rows> of_it = cut_by_chunk(rows_for_node(by_peer, of_node), number);
        for (Rows& rows : of_it) {
            const std::int64_t chunk = chunk_of(rows.front().token, number).second;
            chunks[chunk].emplace_back(on_rail(gpu, of_node), std::move(rows));
        }
    }
    for (auto& [chunk, by_node] : chunks) {
        co_await endpoint.delay(layer_.system.node_chunk_rows * sms_.send_token);
        for (auto& [to, rows] : by_node) {
            const bool lies_here = to == gpu && !sms_.queues;
            co_await cross({gpu, to, number, bytes}, std::move(rows),
                           lies_here ? 0 : sms_.send_row);
        }
    }
    endpoint.increase(done_);
}

/// Puts chunks together whose flags have come, and all their rows: a network of many ways may have
/// flags overtake them.
Process ForwardedExchange::gather(GpuId gpu, std::size_t number) {
    sim::Endpoint& endpoint = layer_.endpoint(gpu);
    Channel& own = channel(gpu, number);
    const std::size_t flag_channel = number + static_cast<std::size_t>(channels_);
    std::map<Chunk, Rows> pieces;
    std::int64_t came = 0;
    std::int64_t passed = 0;
    for (std::int64_t flags = 1; passed < own.passing; ++flags) {
        co_await crossing_.arrived(gpu, flag_channel, flags);
        const std::vector<sim::Received> told = crossing_.take_messages(gpu, flag_channel);
        for (const sim::Received& flag : told) {
            Rows& rows = pieces[{node(flag.from), flag.message.counts[0]}];
            const std::int64_t copies = flag.message.counts[1];
            while (copies_in(rows) < copies) {
                co_await crossing_.arrived(gpu, number, came + 1);
                came += take_pieces(gpu, number, pieces);
            }
            passed += copies;
            own.crossed.push_back(std::move(rows));
            endpoint.increase(ready_ + static_cast<sim::CounterId>(number));
        }
    }
    endpoint.increase(done_);
}

/// Returns how many there were.
std::int64_t ForwardedExchange::take_pieces(GpuId gpu, std::size_t number,
                                            std::map<Chunk, Rows>& pieces) {
    std::int64_t came = 0;
    for (const sim::Received& some : crossing_.take_messages(gpu, number)) {
        ++came;
        for (const CarriedRow& row : some.message.rows)
            pieces[chunk_of(row.token, number)].push_back(row);
    }
    return came;
}

/// Copies to the GPUs of the node: to all of them, or, where warps are divided, to the lane's.
Process ForwardedExchange::forward(GpuId gpu, std::size_t number, int lane, Bytes bytes) {
    sim::Endpoint& endpoint = layer_.endpoint(gpu);
    Channel& own = channel(gpu, number);
    std::int64_t looked = 0;
    for (std::size_t next = 0; looked < own.passing; ++next) {
        co_await endpoint.until(ready_ + static_cast<sim::CounterId>(number),
                                static_cast<std::int64_t>(next) + 1);
        const Rows chunk = own.crossed[next];
        std::vector<Rows> pieces = cut(chunk, layer_.system.chunk_rows);
        for (const Rows& piece : pieces) {
            std::vector<Rows> by_rail(per_node_);
            for (const CarriedRow& row : piece) by_rail[target(row) % per_node_].push_back(row);
            std::int64_t copies = 0;
            for (std::uint32_t i = 0; i < per_node_; ++i) {
                if (sms_.lanes > 1 && static_cast<int>(i) != lane) by_rail[i].clear();
                copies += copies_in(by_rail[i]);
            }
            const std::int64_t tokens = copies_in(piece);
            looked += tokens;
            co_await endpoint.delay(tokens * sms_.forward_token + copies * sms_.forward_row);
            if (copies > 0) own.chunks[chunk_of(piece.front().token, number)].copies += copies;
            for (std::uint32_t i = 0; i < per_node_; ++i) {
                const std::uint32_t rail = (gpu + 1 + i) % per_node_;
                const std::int64_t some = copies_in(by_rail[rail]);
                if (some == 0) continue;
                const auto to = static_cast<GpuId>(node(gpu) * per_node_ + rail);
                inside_.send(gpu, to, number, std::move(by_rail[rail]), some * bytes);
            }
        }
    }
    endpoint.increase(done_);
}

Process ForwardedExchange::receive(GpuId gpu, std::size_t number) {
    sim::Endpoint& endpoint = layer_.endpoint(gpu);
    Channel& own = channel(gpu, number);
    std::int64_t copies = 0;
    for (std::int64_t messages = 1; copies < own.copies; ++messages) {
        co_await inside_.arrived(gpu, number, messages);
        std::int64_t came = 0;
        for (const sim::Received& some : inside_.take_messages(gpu, number)) {
            came += copies_in(some.message.rows);
            own.arrived.insert(own.arrived.end(), some.message.rows.begin(),
                               some.message.rows.end());
        }
        copies += came;
        co_await endpoint.delay(came * sms_.receive_row);
    }
    endpoint.increase(done_);
}

Process ForwardedExchange::dispatch(GpuId gpu, Lanes lanes, Bytes bytes) {
    sim::Endpoint& endpoint = layer_.endpoint(gpu);
    const Communicating communicating(layer_.card(gpu));
    hold(gpu);
    for (std::size_t number = 0; number < lanes.size(); ++number) {
        endpoint.spawn("sending SM", send(gpu, number, std::move(lanes[number]), bytes));
        endpoint.spawn("chunks that have crossed", gather(gpu, number));
        for (int lane = 0; lane < sms_.lanes; ++lane)
            endpoint.spawn("forwarding SM", forward(gpu, number, lane, bytes));
        endpoint.spawn("receiving SM", receive(gpu, number));
    }
    co_await endpoint.until(done_, channels_ * (3 + std::int64_t{sms_.lanes}));
    layer_.card(gpu).blocks.release(
        std::min(sms_.per_channel * channels_, layer_.card(gpu).gpu.sms));
}

std::vector<Rows> ForwardedExchange::dispatched(GpuId gpu) {
    std::vector<Rows> rows;
    for (Channel& one : state_[gpu]) rows.push_back(std::move(one.arrived));
    return rows;
}

}  // namespace moehub::systems
