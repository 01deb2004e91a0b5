// The way back of a ForwardedExchange: results to the GPU of their home's rail, which adds up what
// its node made of a token; a sum home; sums of all nodes added there.
#include "layers/copies.hpp"
#include "systems/moe/forwarded.hpp"

#include <algorithm>
#include <tuple>

namespace moehub::systems {

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
            std::stable_sort(
                rows.begin(), rows.end(),
                [](const CarriedRow& a, const CarriedRow& b) { return a.token < b.token; });
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

Process ForwardedExchange::add(GpuId gpu, std::size_t number) {
    sim::Endpoint& endpoint = layer_.endpoint(gpu);
    Channel& own = channel(gpu, number);
    std::int64_t sums = 0;
    for (std::int64_t messages = 1; sums < own.sums; ++messages) {
        co_await home_.arrived(gpu, number, messages);
        std::int64_t came = 0;
        for (const sim::Received& some : home_.take_messages(gpu, number)) {
            came += copies_in(some.message.rows);
            own.returned.insert(own.returned.end(), some.message.rows.begin(),
                                some.message.rows.end());
        }
        sums += came;
        co_await endpoint.delay(came * sms_.add_row);
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
        for (Rows& rows : by_collector)
            std::stable_sort(
                rows.begin(), rows.end(),
                [](const CarriedRow& a, const CarriedRow& b) { return a.token < b.token; });
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
        endpoint.spawn("adding SM", add(gpu, number));
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
