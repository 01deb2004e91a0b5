// Comet (MLSys 2025, in Flux): two fused kernels. In the first, a few thread blocks gather the
// tokens that this GPU's experts want, a token once whatever its number of experts here, and raise
// one flag per source; tiles of the GEMM are ordered by source and wait for its flag. The
// activation is a kernel between. The second GEMM is cut along its columns into `chunks`; other
// thread blocks add up a token's results of a chunk and send them home while the next is computed.
// Counts and the order of rows are known to the host before.
#include "layers/mail.hpp"
#include "sim/gpu/row_gemm.hpp"
#include "systems/moe/host_steps.hpp"

#include <set>

namespace moehub::systems {
namespace comet {

struct Comet {
    MoeLayer& layer;
    RowCounts counts{layer};
    Mail gather{layer.gpus, "tokens of a source", layer.gpus.count()};
    Mail combine{layer.gpus, "results of a chunk", static_cast<std::size_t>(layer.system.chunks)};
    /// [gpu][source]: gathered.
    std::vector<std::vector<Rows>> rows =
        std::vector<std::vector<Rows>>(layer.gpus.count(), std::vector<Rows>(layer.gpus.count()));
    bool tiles_for_rest = false;  ///< for the SMs that communication leaves; else for all
};

struct CometForRest : Comet {
    explicit CometForRest(MoeLayer& of) : Comet{of} { tiles_for_rest = true; }
};

std::int64_t distinct_tokens(const Rows& rows) {
    std::set<std::uint32_t> tokens;
    for (const CarriedRow& row : rows) tokens.insert(row.token);
    return static_cast<std::int64_t>(tokens.size());
}

/// For which tiles are chosen.
int tiled_for(const Comet& c) {
    const int all = c.layer.input.machine.gpu.sms;
    return c.tiles_for_rest ? all - c.layer.system.communication_sms : all;
}

/// From itself first, then around, so that no GPU is asked by all at once.
GpuId source(const MoeLayer& layer, GpuId gpu, std::uint32_t turn) {
    return static_cast<GpuId>((gpu + turn) % layer.gpus.count());
}

/// The rows lie with their token's GPU, in the order of the experts that want them.
void offer_tokens(Comet& c, GpuId gpu) {
    std::vector<Rows> rows = permuted(c.layer, gpu);
    for (std::uint32_t to = 0; to < rows.size(); ++to) c.gather.offer(gpu, to, std::move(rows[to]));
}

/// Until the tokens of a source are here; who comes first takes them out.
Process gathered(Comet& c, GpuId gpu, GpuId from) {
    co_await c.gather.arrived(gpu, from, 1);
    Rows some = c.gather.take(gpu, from);
    if (!some.empty()) c.rows[gpu][from] = std::move(some);
}

/// Tiles of one expert, in the order of the sources.
Process run_up(Comet& c, GpuId gpu, int expert, sim::CounterId done) {
    MoeLayer& layer = c.layer;
    const std::int64_t all = c.counts.rows(gpu, expert);
    sim::RowGemm gemm(layer.card(gpu), layer.plan_up_on(all, tiled_for(c)), KernelName::expert_up,
                      sim::TileOrder::by_columns);
    const auto started = [&](std::int64_t rows) {
        return static_cast<std::uint32_t>(rows == all ? (rows + gemm.block_rows() - 1) /
                                                            std::max(1u, gemm.block_rows())
                                                      : rows / std::max(1u, gemm.block_rows()));
    };
    std::int64_t rows = 0;
    for (std::uint32_t turn = 0; turn < layer.gpus.count() && rows < all; ++turn) {
        const GpuId from = source(layer, gpu, turn);
        co_await gathered(c, gpu, from);
        const std::uint32_t before = started(rows);
        for (const CarriedRow& row : c.rows[gpu][from]) rows += row.expert == expert;
        if (started(rows) > before) gemm.start(before, started(rows) - before);
    }
    co_await gemm.finish(all);
    layer.endpoint(gpu).increase(done);
}

/// Source after source, so that the first flags are up early; the next is asked for before the last
/// has answered.
Process gather_tokens(Comet& c, GpuId gpu) {
    MoeLayer& layer = c.layer;
    for (std::uint32_t turn = 0; turn < layer.gpus.count(); ++turn) {
        const GpuId from = source(layer, gpu, turn);
        const Bytes bytes = c.counts.tokens(gpu, from) * layer.dispatch_bytes();
        c.gather.fetch(gpu, from, {.from = from, .key = gpu, .bytes = bytes});
        if (turn > 0) co_await gathered(c, gpu, source(layer, gpu, turn - 1));
    }
    co_await gathered(c, gpu, source(layer, gpu, layer.gpus.count() - 1));
}

Process first_kernel(Comet& c, GpuId gpu) {
    MoeLayer& layer = c.layer;
    sim::Card& card = layer.card(gpu);
    const Communicating communicating(card);
    co_await run_for(card, to_seconds(card.gpu.kernels.gemm_start), KernelName::expert_up);
    card.blocks.hold(layer.system.communication_sms, KernelName::dispatch);
    const sim::CounterId done = layer.endpoint(gpu).add_counter("first GEMMs");
    const std::vector<int>& experts = layer.experts_of(gpu);
    for (const int expert : experts) {
        layer.endpoint(gpu).spawn("first GEMM", run_up(c, gpu, expert, done));
    }
    co_await gather_tokens(c, gpu);
    card.blocks.release(layer.system.communication_sms, KernelName::dispatch);
    co_await layer.endpoint(gpu).until(done, static_cast<std::int64_t>(experts.size()));
    layer.gpus.first_gemm_ended(gpu);
}

/// All of a home's results of a chunk: a token's are added up here.
void send_chunk(Comet& c, GpuId gpu, std::size_t chunk, bool last) {
    MoeLayer& layer = c.layer;
    for (std::uint32_t turn = 0; turn < layer.gpus.count(); ++turn) {
        const GpuId home = source(layer, gpu, turn);
        Rows& rows = c.rows[gpu][home];
        const Bytes bytes = distinct_tokens(rows) * layer.combine_bytes() / layer.system.chunks;
        c.combine.send(gpu, home, chunk, last ? std::move(rows) : Rows{}, bytes);
    }
}

Process second_kernel(Comet& c, GpuId gpu) {
    MoeLayer& layer = c.layer;
    sim::Endpoint& endpoint = layer.endpoint(gpu);
    sim::Card& card = layer.card(gpu);
    const std::vector<int>& experts = layer.experts_of(gpu);
    const auto chunks = static_cast<std::size_t>(layer.system.chunks);
    co_await run_for(card, to_seconds(card.gpu.kernels.gemm_start), KernelName::expert_down);
    card.blocks.hold(layer.system.communication_sms, KernelName::combine);
    const Communicating communicating(card);
    const sim::CounterId done = endpoint.add_counters("chunks of second GEMMs", chunks);
    for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
        for (const int expert : experts) {
            const std::int64_t rows = c.counts.rows(gpu, expert);
            endpoint.spawn(
                "second GEMM",
                run_down_part(layer, gpu,
                              layer.plan_down_part(rows, layer.system.chunks, tiled_for(c)),
                              done + static_cast<sim::CounterId>(chunk)));
        }
    }
    for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
        co_await endpoint.until(done + static_cast<sim::CounterId>(chunk),
                                static_cast<std::int64_t>(experts.size()));
        const bool last = chunk + 1 == chunks;
        if (last) {
            for (Rows& rows : c.rows[gpu]) compute(layer, gpu, rows);
            layer.experts_ended(gpu);
        }
        send_chunk(c, gpu, chunk, last);
    }
    for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
        co_await c.combine.arrived(gpu, chunk, layer.gpus.count());
        take_back(layer, gpu, c.combine.take(gpu, chunk));
    }
    card.blocks.release(layer.system.communication_sms, KernelName::combine);
}

Process run_layer(Comet& c, GpuId gpu) {
    MoeLayer& layer = c.layer;
    Host& host = layer.host(gpu);
    // Operators: rows for each expert, the exchange; places: order of the rows.
    co_await exchange_counts(
        layer, c.counts, gpu,
        {.operators = 2, .bytes = kCount * layer.input.model.experts, .places = 1});
    co_await quantise_tokens(layer, gpu);
    offer_tokens(c, gpu);
    co_await host.launch(1);
    co_await first_kernel(c, gpu);
    co_await run_activation(layer, gpu, c.counts.rows(gpu));
    co_await host.launch(1);
    co_await second_kernel(c, gpu);
    co_await layer.scale(gpu);
    co_await finish_with_shared(layer, gpu);
}

}  // namespace comet

/// Comet is tuned by profiles of its kernels: the faster of two tilings.
LayerResult run_comet(const Job& job) {
    const auto for_rest = [](auto& c, GpuId gpu) { return comet::run_layer(c, gpu); };
    LayerResult all = run_program(job, "comet layer", comet::run_layer);
    LayerResult rest = run_program<comet::CometForRest>(job, "comet layer", for_rest);
    return all.time <= rest.time ? all : rest;
}

}  // namespace moehub::systems
