// TensorRT-LLM's one-sided all-to-all: a thread block per token. Dispatch puts one copy of the
// token into each GPU that needs it, at a row number that a local counter gives; then flags to all,
// and all wait for all. Combine waits for flags in the same way and gets every copy's sum by remote
// loads. A block works through a row piece by piece: what 256 threads of 16 bytes take at a time.
// With `once_per_node` a token crosses to each node once, and SMs there pass it on.
#include "systems/moe/one_sided.hpp"

#include "layers/rows.hpp"

#include <algorithm>

namespace moehub::systems::one_sided {

constexpr Bytes kPiece = 256 * 16;   ///< bytes of a row that a block moves at once
constexpr int kBlocks = 2048 / 256;  ///< blocks that an SM holds: its threads by a block's
constexpr Ps kLoad = 700 * kNs;      ///< latency of a load that misses L2; unchecked
constexpr Bytes kFlag = 4;           ///< bytes of a flag
constexpr Bytes kChoice = 8;         ///< bytes of an expert's number and weight, of each choice

/// A GPU's rows by the GPU that its blocks put them into, in the order of tokens.
std::vector<Rows> rows_by_way(const OneSided& o, GpuId gpu) {
    std::vector<Rows> by_way(o.layer.gpus.count());
    std::vector<Rows> by_peer = rows_by_peer(o.layer, gpu);
    for (std::size_t peer = 0; peer < by_peer.size(); ++peer) {
        Rows& rows = by_way[o.way(gpu, static_cast<GpuId>(peer))];
        rows.insert(rows.end(), by_peer[peer].begin(), by_peer[peer].end());
    }
    for (Rows& rows : by_way) {
        std::stable_sort(rows.begin(), rows.end(), [](const CarriedRow& a, const CarriedRow& b) {
            return a.token < b.token;
        });
    }
    return by_way;
}

/// Tokens go to SMs in turn; an SM takes as many at once as it holds blocks.
std::vector<Group> groups_of(const OneSided& o, GpuId gpu) {
    const MoeLayer& layer = o.layer;
    const std::uint32_t sms = o.block_sms;
    const std::uint32_t wave = sms * kBlocks;
    const std::uint32_t tokens = layer.tokens(gpu);
    std::vector<Group> groups((tokens + wave - 1) / wave * sms);
    for (std::uint32_t i = 0; i < groups.size(); ++i)
        groups[i] = {i % sms, gpu, std::vector<Rows>(layer.gpus.count()), {}};
    const std::vector<Rows> rows = rows_by_way(o, gpu);
    for (std::size_t peer = 0; peer < rows.size(); ++peer) {
        for (const CarriedRow& row : rows[peer]) {
            const std::uint32_t token = row.token - layer.first_token(gpu);
            groups[token / wave * sms + token % sms].rows[peer].push_back(row);
        }
    }
    return groups;
}

std::int64_t pieces_of(Bytes row) {
    return std::max<std::int64_t>(1, (row + kPiece - 1) / kPiece);
}

/// Bytes of one of a row's pieces; what goes beside the row goes with the first.
Bytes piece_bytes(Bytes row, Bytes beside, std::int64_t piece) {
    const std::int64_t pieces = pieces_of(row);
    return row * (piece + 1) / pieces - row * piece / pieces + (piece == 0 ? beside : 0);
}

/// Where results of the n-th message from a GPU lie.
std::uint64_t key_of(GpuId home, std::uint32_t message) {
    return (std::uint64_t{home} << 32) | message;
}

/// The blocks of one SM, wave after wave.
Process put_rows(OneSided& o, GpuId gpu, std::vector<Group>& groups) {
    for (Group& group : groups) co_await put_group(o, gpu, group);
    o.layer.endpoint(gpu).increase(o.blocks);
}

Process get_results(OneSided& o, GpuId gpu, std::vector<Group>& groups) {
    for (Group& group : groups) {
        co_await get_group(o, gpu, group);
        take_back(o.layer, gpu, o.got.take(gpu, group.sm));
    }
    o.layer.endpoint(gpu).increase(o.blocks);
}

/// A kernel's work, by SM.
using Work = std::vector<std::vector<Group>>;

Work work_of(const OneSided& o, GpuId gpu) {
    Work by_sm(std::min(o.layer.tokens(gpu), o.block_sms));
    for (Group& group : groups_of(o, gpu)) {
        if (group.sm < by_sm.size()) by_sm[group.sm].push_back(std::move(group));
    }
    return by_sm;
}

/// Has the blocks of every SM work, and holds those SMs; ends with the last.
Process on_all_sms(OneSided& o, GpuId gpu, Work& work, bool putting) {
    MoeLayer& layer = o.layer;
    sim::Card& card = layer.card(gpu);
    const int used = static_cast<int>(work.size());
    card.blocks.hold(used, putting ? KernelName::dispatch : KernelName::combine);
    for (std::vector<Group>& groups : work) {
        layer.endpoint(gpu).spawn("blocks of an SM",
                                  putting ? put_rows(o, gpu, groups) : get_results(o, gpu, groups));
    }
    co_await layer.endpoint(gpu).until(o.blocks, putting ? used : 2 * used);
    card.blocks.release(used, putting ? KernelName::dispatch : KernelName::combine);
}

/// Flags to all that get rows from this GPU, and from all of them.
Process barrier(OneSided& o, GpuId gpu, std::size_t channel) {
    const std::uint32_t first = gpu / o.reach * o.reach;
    for (std::uint32_t step = 1; step < o.reach; ++step) {
        const auto to = static_cast<GpuId>(first + (gpu - first + step) % o.reach);
        o.flags.send(gpu, to, channel, {}, kFlag);
    }
    co_await o.flags.arrived(gpu, channel, o.reach - 1);
    const Ps seen = o.layer.input.machine.gpu.overheads.flag_round_trip / 2;
    co_await o.layer.endpoint(gpu).delay(seen);
}

/// What a GPU has put is acknowledged before its flag goes out: who has all flags has all rows.
Process dispatch(OneSided& o, GpuId gpu, Work& work) {
    sim::Card& card = o.layer.card(gpu);
    const Communicating communicating(card);
    co_await o.layer.endpoint(gpu).delay(o.layer.system.dispatch_start);
    card.blocks.hold(static_cast<int>(o.relay_sms), KernelName::relay);
    spawn_relays(o, gpu);
    co_await on_all_sms(o, gpu, work, true);
    co_await pass_on_rest(o, gpu);
    card.blocks.release(static_cast<int>(o.relay_sms), KernelName::relay);
    co_await o.put.acknowledged(gpu, o.put.sent(gpu));
    co_await barrier(o, gpu, 0);
}

Process combine(OneSided& o, GpuId gpu, Work& work) {
    sim::Card& card = o.layer.card(gpu);
    const Communicating communicating(card);
    co_await o.layer.endpoint(gpu).delay(o.layer.system.combine_start);
    co_await barrier(o, gpu, 1);
    card.blocks.hold(static_cast<int>(o.relay_sms), KernelName::relay);
    spawn_bringers(o, gpu);
    co_await on_all_sms(o, gpu, work, false);
    co_await o.layer.endpoint(gpu).until(o.relays, o.relay_sms);
    card.blocks.release(static_cast<int>(o.relay_sms), KernelName::relay);
    co_await add_sums(o, gpu);
}

/// Results lie where their rows were put, for those who put them.
void offer_results(OneSided& o, GpuId gpu, std::vector<sim::Received>& received) {
    std::vector<std::uint32_t> messages(o.layer.gpus.count());
    for (sim::Received& from : received) {
        if (from.message.rows.empty()) continue;
        compute(o.layer, gpu, from.message.rows);
        o.got.offer(gpu, key_of(from.from, messages[from.from]++), std::move(from.message.rows));
    }
}

/// A GPU's experts' results of a token are one row by the end of the second GEMM.
Process sum_copies(MoeLayer& layer, GpuId gpu, std::int64_t rows, std::int64_t copies) {
    if (!layer.options.compute) co_return;
    co_await layer.host(gpu).launch(1);
    if (rows == 0) co_return;
    const auto width = static_cast<double>(layer.combine_bytes());
    const Traffic sum{.read = static_cast<double>(rows) * width,
                      .written = static_cast<double>(copies) * width};
    co_await run_stream(layer.card(gpu), sum, KernelName::weighted_sum);
}

Process run_layer(OneSided& o, GpuId gpu) {
    MoeLayer& layer = o.layer;
    sim::Endpoint& endpoint = layer.endpoint(gpu);
    co_await layer.route(gpu);
    endpoint.spawn("shared experts", run_shared_beside(layer, gpu, o.shared));
    co_await quantise_tokens(layer, gpu);
    Work work = work_of(o, gpu);
    co_await layer.host(gpu).launch(1);
    layer.gpus.dispatch_began(gpu);
    co_await dispatch(o, gpu, work);
    layer.gpus.dispatch_ended(gpu);

    std::vector<sim::Received> received = o.put.take_messages(gpu, 0);
    std::vector<Rows> rows_in;
    std::int64_t copies = 0;
    for (const sim::Received& from : received) {
        rows_in.push_back(from.message.rows);
        copies += copies_in(from.message.rows);
    }
    const std::int64_t rows = count_rows(rows_in);
    const std::vector<std::int64_t> by_expert = rows_by_expert(layer, gpu, rows_in);
    co_await convert_rows(layer, gpu, rows);
    co_await run_grouped_experts(layer, gpu, by_expert);
    layer.experts_ended(gpu);
    co_await sum_copies(layer, gpu, rows, copies);
    offer_results(o, gpu, received);

    co_await layer.host(gpu).launch(1);
    layer.gpus.combine_began(gpu);
    co_await combine(o, gpu, work);
    layer.gpus.combine_ended(gpu);
    co_await endpoint.until(o.shared, 1);
    co_await layer.finish(gpu);
}

/// Rows are read from memory piece by piece; stores are not waited for. What crosses between nodes
/// lies in memory already, and does so whole.
Process put_group(OneSided& o, GpuId gpu, Group& group) {
    MoeLayer& layer = o.layer;
    const Bytes row = layer.dispatch_bytes();
    const std::int64_t pieces = pieces_of(row);
    const Bytes beside = kChoice * layer.top_k();
    co_await layer.endpoint(gpu).delay(layer.input.machine.gpu.overheads.atomic_latency);
    group.keys.resize(layer.gpus.count());
    for (std::int64_t piece = 0; piece < pieces; ++piece) {
        co_await layer.endpoint(gpu).delay(kLoad);
        for (std::uint32_t step = 1; step <= layer.gpus.count(); ++step) {
            const auto peer = static_cast<GpuId>((gpu + step) % layer.gpus.count());
            Rows& rows = group.rows[peer];
            if (rows.empty()) continue;
            const bool last = piece + 1 == pieces;
            if (!o.same_node(gpu, peer)) {
                if (piece == 0) co_await cross(o, gpu, peer, group, row + beside);
                continue;
            }
            const Bytes bytes = copies_in(rows) * piece_bytes(row, beside, piece);
            if (last) group.keys[peer] = key_of(gpu, o.put_to[gpu][peer]++);
            o.put.send(gpu, peer, 0, last ? rows : Rows{}, bytes);
        }
    }
}

/// All copies' pieces are loaded together, the next ones when they are there.
Process get_group(OneSided& o, GpuId gpu, Group& group) {
    MoeLayer& layer = o.layer;
    const Bytes row = layer.combine_bytes();
    const std::int64_t pieces = pieces_of(row);
    for (std::int64_t piece = 0; piece < pieces; ++piece) {
        for (std::uint32_t step = 1; step <= layer.gpus.count(); ++step) {
            const auto peer = static_cast<GpuId>((gpu + step) % layer.gpus.count());
            Rows& rows = group.rows[peer];
            if (rows.empty() || !o.same_node(gpu, peer)) continue;
            Mail::Load load{.from = peer, .key = group.keys[peer]};
            load.bytes = copies_in(rows) * piece_bytes(row, 0, piece);
            load.rows = piece + 1 == pieces;
            o.got.fetch(gpu, group.sm, load);
            ++o.asked[gpu][group.sm];
        }
        co_await o.got.arrived(gpu, group.sm, o.asked[gpu][group.sm]);
        co_await layer.endpoint(gpu).delay(kLoad);
    }
}

}  // namespace moehub::systems::one_sided

namespace moehub::systems {

LayerResult run_one_sided(const Job& job) {
    return run_program(job, "one-sided layer", one_sided::run_layer);
}

}  // namespace moehub::systems
