// TensorRT-LLM's one-sided all-to-all: a thread block per token. Dispatch puts one copy of the
// token into each GPU that needs it, at a place that a local counter gives; then flags to all, and
// all wait for all. Combine waits for flags in the same way and gets every copy's sum by remote
// loads. A block works through a row piece by piece: what 256 threads of 16 bytes take at a time.
#include "systems/buffers.hpp"
#include "systems/copies.hpp"
#include "systems/expert_kernels.hpp"
#include "systems/mail.hpp"
#include "systems/systems.hpp"

#include <algorithm>

namespace moehub::systems {
namespace {

constexpr Bytes kPiece = 256 * 16;   ///< bytes of a row that a block moves at once
constexpr int kBlocks = 2048 / 256;  ///< blocks that an SM holds: its threads by a block's
constexpr Ps kLoad = 700 * kNs;      ///< of a load that misses L2; unchecked
constexpr Bytes kFlag = 4;           ///< bytes of a flag
constexpr Bytes kChoice = 8;         ///< bytes of an expert's number and weight, of each slot

struct OneSided {
    explicit OneSided(Layer& of);

    Layer& layer;
    Mail put;
    Mail got;
    Mail flags;                          ///< channel 0: rows are there; 1: results can be got
    std::vector<sim::CounterId> shared;  ///< by GPU: 1 when the shared experts are done
    std::vector<sim::CounterId> blocks;  ///< by GPU: finished groups of blocks
    std::vector<std::int64_t> messages;  ///< by GPU: that will be put there
    std::vector<const double*> made;     ///< [token][slot]: results, where their makers have them
};

/// The tokens that blocks of one SM work on together, and what they send to each peer.
struct Group {
    std::uint32_t sm = 0;
    std::vector<Buffer> rows;  ///< by peer
};

/// Tokens go to SMs in turn; an SM takes as many at once as it holds blocks.
std::vector<Group> groups_of(const Layer& layer, GpuId gpu) {
    const auto sms = static_cast<std::uint32_t>(layer.input.machine.gpu.sms);
    const std::uint32_t wave = sms * kBlocks;
    const std::uint32_t tokens = layer.tokens(gpu);
    std::vector<Group> groups((tokens + wave - 1) / wave * sms);
    for (std::uint32_t i = 0; i < groups.size(); ++i)
        groups[i] = {i % sms, std::vector<Buffer>(layer.gpus())};
    const std::vector<Buffer> rows = rows_by_peer(layer, gpu);
    for (std::size_t peer = 0; peer < rows.size(); ++peer) {
        for (const BufferedRow& row : rows[peer]) {
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

OneSided::OneSided(Layer& of)
    : layer(of),
      put(of, "rows", 1),
      got(of, "results", static_cast<std::size_t>(of.input.machine.gpu.sms)),
      flags(of, "flags", 2),
      messages(of.gpus()),
      made(static_cast<std::size_t>(of.rows())) {
    for (std::uint32_t i = 0; i < of.gpus(); ++i) {
        const auto gpu = static_cast<GpuId>(i);
        shared.push_back(of.endpoint(gpu).add_counter("shared experts"));
        blocks.push_back(of.endpoint(gpu).add_counter("blocks of a one-sided kernel"));
        for (const Group& group : groups_of(of, gpu)) {
            for (std::size_t peer = 0; peer < group.rows.size(); ++peer)
                if (!group.rows[peer].empty()) messages[peer] += pieces_of(of.dispatch_bytes());
        }
    }
}

/// The blocks of one SM, wave after wave. Rows are read from memory piece by piece; stores are not
/// waited for.
Process put_rows(OneSided& o, GpuId gpu, std::vector<Group> groups) {
    Layer& layer = o.layer;
    const Bytes row = layer.dispatch_bytes();
    const std::int64_t pieces = pieces_of(row);
    const Bytes beside = scale_bytes(layer) + kChoice * layer.top_k();
    for (Group& group : groups) {
        co_await layer.endpoint(gpu).delay(layer.input.machine.gpu.overheads.atomic_latency);
        for (std::int64_t piece = 0; piece < pieces; ++piece) {
            co_await layer.endpoint(gpu).delay(kLoad);
            for (std::uint32_t step = 1; step <= layer.gpus(); ++step) {
                const auto peer = static_cast<GpuId>((gpu + step) % layer.gpus());
                Buffer& rows = group.rows[peer];
                if (rows.empty()) continue;
                const Bytes bytes = copies_in(rows) * piece_bytes(row, beside, piece);
                o.put.send(gpu, peer, 0, piece + 1 < pieces ? Buffer{} : std::move(rows), bytes);
            }
        }
    }
    layer.endpoint(gpu).increase(o.blocks[gpu]);
}

/// The blocks of one SM: all copies' pieces are loaded together, the next ones when they are there.
Process get_results(OneSided& o, GpuId gpu, std::vector<Group> groups) {
    Layer& layer = o.layer;
    const Bytes row = layer.combine_bytes();
    const std::int64_t pieces = pieces_of(row);
    std::int64_t asked = 0;
    for (Group& group : groups) {
        for (std::int64_t piece = 0; piece < pieces; ++piece) {
            for (std::uint32_t step = 1; step <= layer.gpus(); ++step) {
                const auto peer = static_cast<GpuId>((gpu + step) % layer.gpus());
                Buffer& rows = group.rows[peer];
                if (rows.empty()) continue;
                const Bytes bytes = copies_in(rows) * piece_bytes(row, 0, piece);
                for (BufferedRow& one : rows)
                    one.numbers = o.made[one.token * layer.top_k() + one.slot];
                o.got.fetch(gpu, peer, group.sm, piece + 1 < pieces ? Buffer{} : std::move(rows),
                            bytes);
                ++asked;
            }
            co_await o.got.arrived(gpu, group.sm, asked);
            co_await layer.endpoint(gpu).delay(kLoad);
        }
        take_back(layer, gpu, o.got.take(gpu, group.sm));
    }
    layer.endpoint(gpu).increase(o.blocks[gpu]);
}

/// Has the blocks of every SM work, and holds those SMs; ends with the last.
Process on_all_sms(OneSided& o, GpuId gpu, std::int64_t done_before, bool putting) {
    Layer& layer = o.layer;
    sim::Card& card = layer.card(gpu);
    const int used = static_cast<int>(
        std::min<std::uint32_t>(layer.tokens(gpu), static_cast<std::uint32_t>(card.gpu.sms)));
    std::vector<std::vector<Group>> by_sm(static_cast<std::size_t>(used));
    for (Group& group : groups_of(layer, gpu))
        if (group.sm < by_sm.size()) by_sm[group.sm].push_back(std::move(group));
    card.blocks.hold(used);
    for (std::vector<Group>& groups : by_sm) {
        layer.endpoint(gpu).spawn("blocks of an SM", putting
                                                         ? put_rows(o, gpu, std::move(groups))
                                                         : get_results(o, gpu, std::move(groups)));
    }
    co_await layer.endpoint(gpu).until(o.blocks[gpu], done_before + used);
    card.blocks.release(used);
}

/// Flags to all, and from all.
Process barrier(OneSided& o, GpuId gpu, std::size_t channel) {
    Layer& layer = o.layer;
    co_await meet(layer, o.flags, gpu, channel, kFlag);
    co_await layer.endpoint(gpu).delay(layer.input.machine.gpu.overheads.flag_round_trip / 2);
}

Process dispatch(OneSided& o, GpuId gpu) {
    const Communicating communicating(o.layer.card(gpu));
    co_await o.layer.endpoint(gpu).delay(o.layer.system.dispatch_start);
    co_await on_all_sms(o, gpu, 0, true);
    co_await o.put.acknowledged(gpu, o.put.sent(gpu));
    co_await barrier(o, gpu, 0);
    co_await o.put.arrived(gpu, 0, o.messages[gpu]);
}

Process combine(OneSided& o, GpuId gpu) {
    Layer& layer = o.layer;
    const Communicating communicating(layer.card(gpu));
    co_await layer.endpoint(gpu).delay(layer.system.combine_start);
    co_await barrier(o, gpu, 1);
    const std::int64_t put = std::min<std::int64_t>(layer.tokens(gpu), layer.card(gpu).gpu.sms);
    co_await on_all_sms(o, gpu, put, false);
}

/// A GPU's experts' results of a token are one row by the end of the second GEMM.
Process sum_copies(Layer& layer, GpuId gpu, std::int64_t rows, std::int64_t copies) {
    if (!layer.options.compute || rows == 0) co_return;
    const auto width = static_cast<double>(layer.combine_bytes());
    const Traffic sum{.read = static_cast<double>(rows) * width,
                      .written = static_cast<double>(copies) * width};
    co_await run_stream(layer.card(gpu), sum);
}

Process run_layer(OneSided& o, GpuId gpu) {
    Layer& layer = o.layer;
    sim::Endpoint& endpoint = layer.endpoint(gpu);
    co_await layer.route(gpu);
    endpoint.spawn("shared experts", run_shared_beside(layer, gpu, o.shared[gpu]));
    layer.dispatch_began(gpu);
    co_await dispatch(o, gpu);
    layer.dispatch_ended(gpu);

    Buffer received = o.put.take(gpu, 0);
    co_await run_grouped_experts(layer, gpu);
    compute(layer, gpu, received);
    const auto rows = static_cast<std::int64_t>(received.size());
    co_await sum_copies(layer, gpu, rows, copies_in(received));
    for (const BufferedRow& row : received)
        o.made[row.token * layer.top_k() + row.slot] = row.numbers;

    layer.combine_began(gpu);
    co_await combine(o, gpu);
    layer.combine_ended(gpu);
    co_await endpoint.until(o.shared[gpu], 1);
    co_await layer.finish(gpu);
}

}  // namespace

LayerResult run_one_sided(const Job& job) {
    Layer layer(job);
    OneSided one_sided(layer);
    run_on_all(layer, one_sided, [](OneSided& shared, GpuId gpu) {
        shared.layer.endpoint(gpu).spawn("one-sided layer", run_layer(shared, gpu));
    });
    return layer.result();
}

}  // namespace moehub::systems
