// Comet (MLSys 2025, in Flux): two fused kernels. In the first, a few thread blocks gather the
// tokens that this GPU's experts want, a token once whatever its number of experts here, and raise
// one flag per source; tiles of the GEMM are ordered by source and wait for its flag. The
// activation is a kernel between. The second GEMM is cut along its columns into `chunks`; other
// thread blocks add up a token's results of a chunk and send them home while the next is computed.
// Counts and the places of rows are known to the host before.
#include "systems/buffers.hpp"
#include "systems/eager_host.hpp"
#include "systems/mail.hpp"
#include "systems/row_gemm.hpp"
#include "systems/systems.hpp"

#include <set>

namespace moehub::systems {
namespace {

constexpr Bytes kCount = 4;  ///< bytes of a count of rows

struct Comet {
    explicit Comet(Layer& of)
        : layer(of),
          counts(of),
          gather(of, "tokens of a source", of.gpus()),
          combine(of, "results of a chunk", static_cast<std::size_t>(of.system.chunks)),
          rows(of.gpus(), std::vector<Buffer>(of.gpus())) {
        for (std::uint32_t gpu = 0; gpu < of.gpus(); ++gpu) {
            const std::vector<Buffer> sent = permuted(of, static_cast<GpuId>(gpu));
            for (std::uint32_t to = 0; to < of.gpus(); ++to) rows[to][gpu] = sent[to];
        }
    }

    Layer& layer;
    CountExchange counts;
    Mail gather;
    Mail combine;
    std::vector<std::vector<Buffer>> rows;  ///< [gpu][source]
};

std::int64_t distinct_tokens(const Buffer& rows) {
    std::set<std::uint32_t> tokens;
    for (const BufferedRow& row : rows) tokens.insert(row.token);
    return static_cast<std::int64_t>(tokens.size());
}

/// From itself first, then around, so that no GPU is asked by all at once.
GpuId source(const Layer& layer, GpuId gpu, std::uint32_t turn) {
    return static_cast<GpuId>((gpu + turn) % layer.gpus());
}

Process count(Comet& c, GpuId gpu, EagerHost& host) {
    Layer& layer = c.layer;
    co_await host.launch(4);  // logits, softmax, top-k, weights
    co_await layer.route(gpu);
    co_await host.launch(2);  // rows for each expert, the exchange
    co_await small_kernels(layer, gpu, 1);
    co_await c.counts.exchange(gpu, kCount * layer.input.model.experts);
    co_await host.launch(1);  // places of the rows
    co_await small_kernels(layer, gpu, 1);
    co_await host.synchronise();
}

/// Tiles of one expert, in the order of the sources.
Process run_up(Comet& c, GpuId gpu, int expert, sim::CounterId done) {
    Layer& layer = c.layer;
    const std::int64_t all = layer.rows_on(layer.rank_of(gpu), expert);
    RowGemm gemm(layer.card(gpu), layer.plan_up(all), TileOrder::by_columns);
    const auto started = [&](std::int64_t rows) {
        return static_cast<std::uint32_t>(rows == all ? (rows + gemm.block_rows() - 1) /
                                                            std::max(1u, gemm.block_rows())
                                                      : rows / std::max(1u, gemm.block_rows()));
    };
    std::int64_t rows = 0;
    for (std::uint32_t turn = 0; turn < layer.gpus() && rows < all; ++turn) {
        const GpuId from = source(layer, gpu, turn);
        co_await c.gather.arrived(gpu, from, 1);
        const std::uint32_t before = started(rows);
        for (const BufferedRow& row : c.rows[gpu][from]) rows += row.expert == expert;
        if (started(rows) > before) gemm.start(before, started(rows) - before);
    }
    co_await gemm.finish(all);
    layer.endpoint(gpu).increase(done);
}

/// Source after source, so that the first flags are up early; the next is asked for before the last
/// has answered.
Process gather_tokens(Comet& c, GpuId gpu) {
    Layer& layer = c.layer;
    for (std::uint32_t turn = 0; turn < layer.gpus(); ++turn) {
        const GpuId from = source(layer, gpu, turn);
        const Buffer& rows = c.rows[gpu][from];
        c.gather.fetch(gpu, from, from, {}, distinct_tokens(rows) * layer.dispatch_bytes());
        if (turn > 0) co_await c.gather.arrived(gpu, source(layer, gpu, turn - 1), 1);
    }
    co_await c.gather.arrived(gpu, source(layer, gpu, layer.gpus() - 1), 1);
}

Process first_kernel(Comet& c, GpuId gpu) {
    Layer& layer = c.layer;
    sim::Card& card = layer.card(gpu);
    const Communicating communicating(card);
    co_await run_for(card, to_seconds(card.gpu.kernels.gemm_start));
    card.blocks.hold(layer.system.communication_sms);
    const sim::CounterId done = layer.endpoint(gpu).add_counter("first GEMMs");
    const std::vector<int>& experts = layer.experts_of(gpu);
    for (const int expert : experts) {
        layer.endpoint(gpu).spawn("first GEMM", run_up(c, gpu, expert, done));
    }
    co_await gather_tokens(c, gpu);
    card.blocks.release(layer.system.communication_sms);
    co_await layer.endpoint(gpu).until(done, static_cast<std::int64_t>(experts.size()));
    layer.first_gemm_ended(gpu);
}

/// One expert's tiles of one chunk of columns.
Process run_down(Layer& layer, GpuId gpu, GemmPlan plan, sim::CounterId done) {
    plan.start = 0;
    if (plan.tiles() > 0) co_await run_gemm(layer.card(gpu), plan);
    layer.endpoint(gpu).increase(done);
}

/// All of a home's results of a chunk: a token's are added up here.
void send_chunk(Comet& c, GpuId gpu, std::size_t chunk, bool last) {
    Layer& layer = c.layer;
    for (std::uint32_t turn = 0; turn < layer.gpus(); ++turn) {
        const GpuId home = source(layer, gpu, turn);
        Buffer& rows = c.rows[gpu][home];
        const Bytes bytes = distinct_tokens(rows) * layer.combine_bytes() / layer.system.chunks;
        c.combine.send(gpu, home, chunk, last ? std::move(rows) : Buffer{}, bytes);
    }
}

Process second_kernel(Comet& c, GpuId gpu) {
    Layer& layer = c.layer;
    sim::Endpoint& endpoint = layer.endpoint(gpu);
    sim::Card& card = layer.card(gpu);
    const std::vector<int>& experts = layer.experts_of(gpu);
    const auto chunks = static_cast<std::size_t>(layer.system.chunks);
    co_await run_for(card, to_seconds(card.gpu.kernels.gemm_start));
    card.blocks.hold(layer.system.communication_sms);
    const Communicating communicating(card);
    const sim::CounterId done = endpoint.add_counters("chunks of second GEMMs", chunks);
    for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
        for (const int expert : experts) {
            const std::int64_t rows = layer.rows_on(layer.rank_of(gpu), expert);
            endpoint.spawn("second GEMM",
                           run_down(layer, gpu, layer.plan_down_part(rows, layer.system.chunks),
                                    done + static_cast<sim::CounterId>(chunk)));
        }
    }
    for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
        co_await endpoint.until(done + static_cast<sim::CounterId>(chunk),
                                static_cast<std::int64_t>(experts.size()));
        const bool last = chunk + 1 == chunks;
        if (last) {
            for (Buffer& rows : c.rows[gpu]) compute(layer, gpu, rows);
            layer.experts_ended(gpu);
        }
        send_chunk(c, gpu, chunk, last);
    }
    for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
        co_await c.combine.arrived(gpu, chunk, layer.gpus());
        take_back(layer, gpu, c.combine.take(gpu, chunk));
    }
    card.blocks.release(layer.system.communication_sms);
}

Process run_layer(Comet& c, GpuId gpu) {
    Layer& layer = c.layer;
    EagerHost host(layer, gpu);
    if (!layer.backward()) co_await count(c, gpu, host);
    co_await host.launch(1);
    co_await first_kernel(c, gpu);
    co_await host.launch(1);
    co_await run_activation(layer, gpu, layer.rows_on(gpu));
    co_await host.launch(1);
    co_await second_kernel(c, gpu);
    co_await host.launch(1);  // sum over GPUs
    co_await layer.scale(gpu);
    if (layer.input.model.shared_experts > 0) co_await host.launch(3);
    co_await layer.run_shared(gpu);
    co_await layer.finish(gpu);
}

LayerResult run(Layer& layer) {
    Comet shared(layer);
    run_on_all(layer, shared, [](Comet& c, GpuId gpu) {
        c.layer.endpoint(gpu).spawn("comet layer", run_layer(c, gpu));
    });
    return layer.result();
}

}  // namespace

LayerResult run_comet(const Job& job) {
    return run_eager(job, run);
}

}  // namespace moehub::systems
