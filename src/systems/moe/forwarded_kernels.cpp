// The kernels of a ForwardedExchange. The way out: tokens across to the GPUs of their rail, copies
// inside the node.
#include "layers/rows.hpp"
#include "systems/moe/forwarded.hpp"

#include <algorithm>
#include <tuple>

namespace moehub::systems {

namespace {

constexpr Bytes kFlag = 8;  ///< bytes that tell of a chunk

}  // namespace

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
            for (const CarriedRow& row : piece)
                by_rail[targets_.of(row) % per_node_].push_back(row);
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

Process ForwardedExchange::take_in(GpuId gpu, std::size_t number, Incoming in) {
    sim::Endpoint& endpoint = layer_.endpoint(gpu);
    std::int64_t copies = 0;
    for (std::int64_t messages = 1; copies < in.copies; ++messages) {
        co_await in.mail.arrived(gpu, number, messages);
        std::int64_t came = 0;
        for (const sim::Received& some : in.mail.take_messages(gpu, number)) {
            came += copies_in(some.message.rows);
            in.rows.insert(in.rows.end(), some.message.rows.begin(), some.message.rows.end());
        }
        copies += came;
        co_await endpoint.delay(came * in.each);
    }
    endpoint.increase(done_);
}

Process ForwardedExchange::dispatch(GpuId gpu, Lanes lanes, Bytes bytes) {
    sim::Endpoint& endpoint = layer_.endpoint(gpu);
    const Communicating communicating(layer_.card(gpu));
    layer_.card(gpu).blocks.hold(sms_of(gpu), KernelName::dispatch);
    for (std::size_t number = 0; number < lanes.size(); ++number) {
        endpoint.spawn("sending SM", send(gpu, number, std::move(lanes[number]), bytes));
        endpoint.spawn("chunks that have crossed", gather(gpu, number));
        for (int lane = 0; lane < sms_.lanes; ++lane)
            endpoint.spawn("forwarding SM", forward(gpu, number, lane, bytes));
        Channel& own = channel(gpu, number);
        endpoint.spawn("receiving SM",
                       take_in(gpu, number, {inside_, own.copies, own.arrived, sms_.receive_row}));
    }
    co_await endpoint.until(done_, channels_ * (3 + std::int64_t{sms_.lanes}));
    layer_.card(gpu).blocks.release(sms_of(gpu), KernelName::dispatch);
}

std::vector<Rows> ForwardedExchange::dispatched(GpuId gpu) {
    std::vector<Rows> rows;
    for (Channel& one : state_[gpu]) rows.push_back(std::move(one.arrived));
    return rows;
}

// The way back of a ForwardedExchange: results to the GPU of their home's rail, which adds up what
// its node made of a token; a sum home; sums of all nodes added there.

/// Results for the GPUs that add them up, chunk by chunk, in the order in which chunks crossed.
Process ForwardedExchange::contribute(GpuId gpu, std::size_t number, std::vector<Rows> by_collector,
                                      Bytes bytes) {
    sim::Endpoint& endpoint = layer_.endpoint(gpu);
    struct Outgoing {
        std::int64_t chunk;
        std::uint32_t step;  ///< home's node, counted from the own one
        std::uint32_t turn;  ///< so that not all GPUs send to the same at once
        GpuId to;
        Rows rows;
    };
    std::vector<Outgoing> list;
    for (std::uint32_t rail = 0; rail < per_node_; ++rail) {
        const auto to = static_cast<GpuId>(node(gpu) * per_node_ + rail);
        std::vector<Rows> chunks = cut_by_chunk(std::move(by_collector[rail]), number);
        for (Rows& rows : chunks) {
            const Chunk chunk = chunk_of(rows.front().token, number);
            const std::uint32_t step = (chunk.first + nodes_ - node(gpu) - 1) % nodes_;
            const std::uint32_t turn = (rail + 2 * per_node_ - 1 - gpu % per_node_) % per_node_;
            list.push_back({chunk.second, step, turn, to, std::move(rows)});
        }
    }
    std::stable_sort(list.begin(), list.end(), [](const Outgoing& a, const Outgoing& b) {
        return std::tie(a.chunk, a.step, a.turn) < std::tie(b.chunk, b.step, b.turn);
    });
    for (const Outgoing& one : list) {
        std::vector<Rows> pieces = cut(one.rows, layer_.system.chunk_rows);
        for (Rows& piece : pieces) {
            const std::int64_t copies = copies_in(piece);
            co_await endpoint.delay(copies * sms_.contribute_row);
            collected_.send(gpu, one.to, number, std::move(piece), copies * bytes);
        }
    }
    endpoint.increase(done_);
}

/// A chunk goes home when all its results are there.
Process ForwardedExchange::collect(GpuId gpu, std::size_t number, Bytes bytes) {
    sim::Endpoint& endpoint = layer_.endpoint(gpu);
    Channel& own = channel(gpu, number);
    std::size_t open = own.chunks.size();
    for (std::int64_t messages = 1; open > 0; ++messages) {
        co_await collected_.arrived(gpu, number, messages);
        std::vector<sim::Received> came = collected_.take_messages(gpu, number);
        for (sim::Received& some : came) {
            if (some.message.rows.empty()) continue;
            Forwarded& chunk = own.chunks[chunk_of(some.message.rows.front().token, number)];
            const std::int64_t copies = copies_in(some.message.rows);
            chunk.back += copies;
            chunk.results.insert(chunk.results.end(), some.message.rows.begin(),
                                 some.message.rows.end());
            co_await endpoint.delay(copies * sms_.collect_row);
            if (chunk.back < chunk.copies) continue;
            Rows rows = std::move(chunk.results);
            sort_by_token(rows);
            const GpuId home = layer_.home_of(rows.front().token);
            const Crossing way{gpu, home, number, bytes};
            const Ps posted = home == gpu ? 0 : sms_.return_row;
            std::vector<Rows> pieces = cut(rows, layer_.system.chunk_rows);
            for (Rows& piece : pieces) {
                const std::int64_t sums = copies_in(piece);
                co_await endpoint.delay(sums * (sms_.collect_sum + posted) +
                                        reserve(way, sums * bytes));
                home_.send(gpu, home, number, std::move(piece), sums * bytes);
            }
            --open;
        }
    }
    endpoint.increase(done_);
}

Process ForwardedExchange::combine(GpuId gpu, std::vector<Rows> results, Bytes bytes) {
    sim::Endpoint& endpoint = layer_.endpoint(gpu);
    const Communicating communicating(layer_.card(gpu));
    const std::int64_t before = endpoint.value(done_);
    layer_.card(gpu).blocks.hold(sms_of(gpu), KernelName::combine);
    std::int64_t processes = 0;
    for (std::size_t number = 0; number < results.size(); ++number) {
        std::vector<Rows> by_collector(per_node_);
        for (const CarriedRow& row : results[number])
            by_collector[layer_.home_of(row.token) % per_node_].push_back(row);
        for (Rows& rows : by_collector) sort_by_token(rows);
        for (std::uint32_t lane = 0; lane < static_cast<std::uint32_t>(sms_.lanes); ++lane) {
            std::vector<Rows> part(per_node_);
            if (sms_.lanes == 1) {
                part = std::move(by_collector);
            } else {
                part[lane] = std::move(by_collector[lane]);
            }
            endpoint.spawn("contributing warps", contribute(gpu, number, std::move(part), bytes));
            ++processes;
        }
        endpoint.spawn("collecting SM", collect(gpu, number, bytes));
        Channel& own = channel(gpu, number);
        endpoint.spawn("adding SM",
                       take_in(gpu, number, {home_, own.sums, own.returned, sms_.add_row}));
        processes += 2;
    }
    co_await endpoint.until(done_, before + processes);
    layer_.card(gpu).blocks.release(sms_of(gpu), KernelName::combine);
}

std::vector<Rows> ForwardedExchange::combined(GpuId gpu) {
    std::vector<Rows> rows;
    for (Channel& one : state_[gpu]) rows.push_back(std::move(one.returned));
    return rows;
}

}  // namespace moehub::systems
