// The way out of a ForwardedExchange: tokens across to the GPUs of their rail, copies inside the
// node.
#include "layers/copies.hpp"
#include "systems/moe/forwarded.hpp"

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
    layer_.card(gpu).blocks.hold(sms_of(gpu), KernelName::dispatch);
    for (std::size_t number = 0; number < lanes.size(); ++number) {
        endpoint.spawn("sending SM", send(gpu, number, std::move(lanes[number]), bytes));
        endpoint.spawn("chunks that have crossed", gather(gpu, number));
        for (int lane = 0; lane < sms_.lanes; ++lane)
            endpoint.spawn("forwarding SM", forward(gpu, number, lane, bytes));
        endpoint.spawn("receiving SM", receive(gpu, number));
    }
    co_await endpoint.until(done_, channels_ * (3 + std::int64_t{sms_.lanes}));
    layer_.card(gpu).blocks.release(sms_of(gpu), KernelName::dispatch);
}

std::vector<Rows> ForwardedExchange::dispatched(GpuId gpu) {
    std::vector<Rows> rows;
    for (Channel& one : state_[gpu]) rows.push_back(std::move(one.arrived));
    return rows;
}

}  // namespace moehub::systems
