// TensorRT-LLM's one-sided all-to-all: a thread block per token. Dispatch puts one copy of the
// token into each GPU that needs it, at a row number that a local counter gives; then flags to all,
// and all wait for all. Combine waits for flags in the same way and gets every copy's sum by remote
// loads. A block works through a row piece by piece: what 256 threads of 16 bytes take at a time.
#include "layers/copies.hpp"
#include "layers/expert_kernels.hpp"
#include "layers/mail.hpp"
#include "layers/rows.hpp"
#include "systems/systems.hpp"

#include <algorithm>

namespace moehub::systems {
namespace {

constexpr Bytes kPiece = 256 * 16;   ///< bytes of a row that a block moves at once
constexpr int kBlocks = 2048 / 256;  ///< blocks that an SM holds: its threads by a block's
constexpr Ps kLoad = 700 * kNs;      ///< of a load that misses L2; unchecked
constexpr Bytes kFlag = 4;           ///< bytes of a flag
constexpr Bytes kChoice = 8;         ///< bytes of an expert's number and weight, of each choice

struct OneSided {
    explicit OneSided(MoeLayer& of)
        : layer(of),
          put(of.gpus, "rows", 1),
          got(of.gpus, "results", static_cast<std::size_t>(of.input.machine.gpu.sms)),
          flags(of.gpus, "flags", 2),
          shared(of.gpus.add_counter("shared experts")),
          blocks(of.gpus.add_counter("blocks of a one-sided kernel")),
          put_to(of.gpus.count(), std::vector<std::uint32_t>(of.gpus.count())) {}

    MoeLayer& layer;
    Mail put;
    Mail got;
    Mail flags;             ///< channel 0: rows are there; 1: results can be got
    sim::CounterId shared;  ///< 1 when the shared experts are done
    sim::CounterId blocks;  ///< finished groups of blocks
    std::vector<std::vector<std::uint32_t>> put_to;  ///< [gpu][peer]: messages with rows so far
};

/// The tokens that blocks of one SM work on together, and what they send to each peer.
struct Group {
    std::uint32_t sm = 0;
    std::vector<Rows> rows;           ///< by peer
    std::vector<std::uint64_t> keys;  ///< by peer: under which it will offer the results
};

/// Tokens go to SMs in turn; an SM takes as many at once as it holds blocks.
std::vector<Group> groups_of(const MoeLayer& layer, GpuId gpu) {
    const auto sms = static_cast<std::uint32_t>(layer.input.machine.gpu.sms);
    const std::uint32_t wave = sms * kBlocks;
    const std::uint32_t tokens = layer.tokens(gpu);
    std::vector<Group> groups((tokens + wave - 1) / wave * sms);
    for (std::uint32_t i = 0; i < groups.size(); ++i)
        groups[i] = {i % sms, std::vector<Rows>(layer.gpus.count()), {}};
    const std::vector<Rows> rows = rows_by_peer(layer, gpu);
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

/// The blocks of one SM, wave after wave. Rows are read from memory piece by piece; stores are not
/// waited for.
Process put_rows(OneSided& o, GpuId gpu, std::vector<Group>& groups) {
    MoeLayer& layer = o.layer;
    const Bytes row = layer.dispatch_bytes();
    const std::int64_t pieces = pieces_of(row);
    const Bytes beside = kChoice * layer.top_k();
    for (Group& group : groups) {
        co_await layer.endpoint(gpu).delay(layer.input.machine.gpu.overheads.atomic_latency);
        group.keys.resize(layer.gpus.count());
        for (std::int64_t piece = 0; piece < pieces; ++piece) {
            co_await layer.endpoint(gpu).delay(kLoad);
            for (std::uint32_t step = 1; step <= layer.gpus.count(); ++step) {
                const auto peer = static_cast<GpuId>((gpu + step) % layer.gpus.count());
                Rows& rows = group.rows[peer];
                if (rows.empty()) continue;
                const Bytes bytes = copies_in(rows) * piece_bytes(row, beside, piece);
                const bool last = piece + 1 == pieces;
                if (last) group.keys[peer] = key_of(gpu, o.put_to[gpu][peer]++);
                o.put.send(gpu, peer, 0, last ? rows : Rows{}, bytes);
            }
        }
    }
    layer.endpoint(gpu).increase(o.blocks);
}

/// The blocks of one SM: all copies' pieces are loaded together, the next ones when they are there.
Process get_results(OneSided& o, GpuId gpu, std::vector<Group>& groups) {
    MoeLayer& layer = o.layer;
    const Bytes row = layer.combine_bytes();
    const std::int64_t pieces = pieces_of(row);
    std::int64_t asked = 0;
    for (Group& group : groups) {
        for (std::int64_t piece = 0; piece < pieces; ++piece) {
            for (std::uint32_t step = 1; step <= layer.gpus.count(); ++step) {
                const auto peer = static_cast<GpuId>((gpu + step) % layer.gpus.count());
                Rows& rows = group.rows[peer];
                if (rows.empty()) continue;
                Mail::Load load{.from = peer, .key = group.keys[peer]};
                load.bytes = copies_in(rows) * piece_bytes(row, 0, piece);
                load.rows = piece + 1 == pieces;
                o.got.fetch(gpu, group.sm, load);
                ++asked;
            }
            co_await o.got.arrived(gpu, group.sm, asked);
            co_await layer.endpoint(gpu).delay(kLoad);
        }
        take_back(layer, gpu, o.got.take(gpu, group.sm));
    }
    layer.endpoint(gpu).increase(o.blocks);
}

/// A kernel's work, by SM.
using Work = std::vector<std::vector<Group>>;

Work work_of(const MoeLayer& layer, GpuId gpu) {
    const auto sms = static_cast<std::uint32_t>(layer.input.machine.gpu.sms);
    Work by_sm(std::min(layer.tokens(gpu), sms));
    for (Group& group : groups_of(layer, gpu)) {
        if (group.sm < by_sm.size()) by_sm[group.sm].push_back(std::move(group));
    }
    return by_sm;
}

/// Has the blocks of every SM work, and holds those SMs; ends with the last.
Process on_all_sms(OneSided& o, GpuId gpu, Work& work, bool putting) {
    MoeLayer& layer = o.layer;
    sim::Card& card = layer.card(gpu);
    const int used = static_cast<int>(work.size());
    card.blocks.hold(used);
    for (std::vector<Group>& groups : work) {
        layer.endpoint(gpu).spawn("blocks of an SM",
                                  putting ? put_rows(o, gpu, groups) : get_results(o, gpu, groups));
    }
    co_await layer.endpoint(gpu).until(o.blocks, putting ? used : 2 * used);
    card.blocks.release(used);
}

/// Flags to all, and from all.
Process barrier(OneSided& o, GpuId gpu, std::size_t channel) {
    MoeLayer& layer = o.layer;
    co_await meet(layer.gpus, o.flags, gpu, channel, kFlag);
    co_await layer.endpoint(gpu).delay(layer.input.machine.gpu.overheads.flag_round_trip / 2);
}

/// What a GPU has put is acknowledged before its flag goes out: who has all flags has all rows.
Process dispatch(OneSided& o, GpuId gpu, Work& work) {
    const Communicating communicating(o.layer.card(gpu));
    co_await o.layer.endpoint(gpu).delay(o.layer.system.dispatch_start);
    co_await on_all_sms(o, gpu, work, true);
    co_await o.put.acknowledged(gpu, o.put.sent(gpu));
    co_await barrier(o, gpu, 0);
}

Process combine(OneSided& o, GpuId gpu, Work& work) {
    MoeLayer& layer = o.layer;
    const Communicating communicating(layer.card(gpu));
    co_await layer.endpoint(gpu).delay(layer.system.combine_start);
    co_await barrier(o, gpu, 1);
    co_await on_all_sms(o, gpu, work, false);
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
    co_await run_stream(layer.card(gpu), sum);
}

Process run_layer(OneSided& o, GpuId gpu) {
    MoeLayer& layer = o.layer;
    sim::Endpoint& endpoint = layer.endpoint(gpu);
    co_await layer.route(gpu);
    endpoint.spawn("shared experts", run_shared_beside(layer, gpu, o.shared));
    co_await quantise_tokens(layer, gpu);
    Work work = work_of(layer, gpu);
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

}  // namespace

LayerResult run_one_sided(const Job& job) {
    return run_program<OneSided>(job, "one-sided layer", run_layer);
}

}  // namespace moehub::systems
