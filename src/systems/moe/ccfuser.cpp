// CCFuser (PPoPP 2025): the experts' GEMMs reach into the other GPUs' memory. Row blocks of the
// first are fetched from where their tokens lie, each copy by itself, and start when their rows are
// there; row blocks of the second are stored where the results belong. The host resolves addresses:
// it must know all counts before, and buffers are handed over by a barrier of all GPUs before and
// after. Moving experts, which balances skewed routing, is a matter of placement here.
#include "layers/mail.hpp"
#include "sim/gpu/row_gemm.hpp"
#include "systems/moe/host_steps.hpp"

#include <map>
#include <span>

namespace moehub::systems {
namespace ccfuser {

struct CcFuser {
    Rows& rows_for(GpuId gpu, int expert) { return rows[gpu][static_cast<std::size_t>(expert)]; }

    MoeLayer& layer;
    RowCounts counts{layer};
    Mail ready{layer.gpus, "barrier", 2};
    PulledRows fetched{layer, counts, "rows of a row block"};
    Mail combine{layer.gpus, "results", 1};
    /// [gpu][expert], fetched: in the order of tokens.
    std::vector<std::vector<Rows>> rows = std::vector<std::vector<Rows>>(
        layer.gpus.count(), std::vector<Rows>(static_cast<std::size_t>(layer.input.model.experts)));
};

Process barrier(CcFuser& c, GpuId gpu, std::size_t which) {
    const Communicating communicating(c.layer.card(gpu));
    co_await meet(c.layer.gpus, c.ready, gpu, which, 1);
    co_await c.layer.endpoint(gpu).delay(c.layer.system.barrier);
}

Process run_up(CcFuser& c, GpuId gpu, int expert, sim::CounterId done) {
    MoeLayer& layer = c.layer;
    sim::Endpoint& endpoint = layer.endpoint(gpu);
    const std::int64_t all = c.counts.rows(gpu, expert);
    sim::RowGemm gemm(layer.card(gpu), layer.plan_up(all), KernelName::expert_up,
                      sim::TileOrder::by_columns);
    const std::int64_t size = std::max(1u, gemm.block_rows());
    const std::int64_t blocks = (all + size - 1) / size;
    const sim::CounterId arrived = endpoint.add_counters(
        "rows of a row block", static_cast<std::size_t>(std::max<std::int64_t>(1, blocks)));
    const auto counter = [&](std::int64_t block) {
        return arrived + static_cast<sim::CounterId>(block);
    };
    std::vector<std::int64_t> loads;
    for (std::int64_t block = 0; block < blocks; ++block) {
        const RowRange some{static_cast<std::uint32_t>(block * size),
                            static_cast<std::uint32_t>(std::min(size, all - block * size))};
        loads.push_back(
            c.fetched.pull(gpu, {expert, some, layer.dispatch_bytes(), counter(block)}));
    }
    Rows& rows = c.rows_for(gpu, expert);
    for (std::int64_t block = 0; block < blocks; ++block) {
        co_await endpoint.until(counter(block), loads[static_cast<std::size_t>(block)]);
        const Rows some = c.fetched.take(gpu, counter(block));
        rows.insert(rows.end(), some.begin(), some.end());
        gemm.start(static_cast<std::uint32_t>(block), 1);
    }
    co_await gemm.finish(all);
    endpoint.increase(done);
}

/// Results of a row block go to their tokens' GPUs.
void send_block(CcFuser& c, GpuId gpu, std::span<const CarriedRow> rows) {
    std::map<GpuId, Rows> by_home;
    for (const CarriedRow& row : rows) by_home[c.layer.home_of(row.token)].push_back(row);
    for (auto& [home, some] : by_home) {
        const Bytes bytes = static_cast<Bytes>(some.size()) * c.layer.combine_bytes();
        c.combine.store(gpu, home, 0, std::move(some), bytes);
    }
}

Process run_down(CcFuser& c, GpuId gpu, int expert, sim::CounterId done) {
    MoeLayer& layer = c.layer;
    Rows& rows = c.rows_for(gpu, expert);
    const auto all = static_cast<std::int64_t>(rows.size());
    compute(layer, gpu, rows);
    const GemmPlan plan = layer.plan_down(all);
    const auto size = static_cast<std::size_t>(std::max<std::int64_t>(1, plan.tile_rows));
    sim::RowGemm gemm(
        layer.card(gpu), plan, KernelName::expert_down, sim::TileOrder::by_rows,
        [&](std::uint32_t block) {
            const std::size_t begin = block * size;
            send_block(c, gpu, std::span(rows).subspan(begin, std::min(size, rows.size() - begin)));
        });
    gemm.start_all(all);
    co_await gemm.finish(all);
    layer.endpoint(gpu).increase(done);
}

/// A kernel of all experts' first GEMMs, or of their second ones.
Process run_kernel(CcFuser& c, GpuId gpu, bool first) {
    MoeLayer& layer = c.layer;
    sim::Endpoint& endpoint = layer.endpoint(gpu);
    const Communicating communicating(layer.card(gpu));
    const char* const gemms = first ? "first GEMMs" : "second GEMMs";
    const sim::CounterId done = endpoint.add_counter(gemms);
    co_await run_for(layer.card(gpu), to_seconds(layer.card(gpu).gpu.kernels.grouped_start),
                     first ? KernelName::expert_up : KernelName::expert_down);
    const std::vector<int>& experts = layer.experts_of(gpu);
    for (const int expert : experts)
        endpoint.spawn(first ? "first GEMM" : "second GEMM",
                       first ? run_up(c, gpu, expert, done) : run_down(c, gpu, expert, done));
    co_await endpoint.until(done, static_cast<std::int64_t>(experts.size()));
    if (first) {
        layer.gpus.first_gemm_ended(gpu);
        co_return;
    }
    layer.experts_ended(gpu);
    co_await c.combine.acknowledged(gpu, c.combine.sent(gpu));
}

Process run_layer(CcFuser& c, GpuId gpu) {
    MoeLayer& layer = c.layer;
    Host& host = layer.host(gpu);
    // Operators: rows for each expert, the exchange; places: order, running sums, addresses.
    co_await exchange_counts(
        layer, c.counts, gpu,
        {.operators = 2, .bytes = kCount * layer.input.model.experts, .places = 3});
    co_await quantise_tokens(layer, gpu);
    c.fetched.offer(gpu, permuted(layer, gpu));
    co_await host.launch(1);
    co_await barrier(c, gpu, 0);
    co_await host.launch(1);
    co_await run_kernel(c, gpu, true);
    co_await run_activation(layer, gpu, c.counts.rows(gpu));
    co_await host.launch(1);
    co_await run_kernel(c, gpu, false);
    co_await host.launch(1);
    co_await barrier(c, gpu, 1);
    take_back(layer, gpu, c.combine.take(gpu, 0));
    co_await layer.scale(gpu);
    co_await finish_with_shared(layer, gpu);
}

}  // namespace ccfuser

LayerResult run_ccfuser(const Job& job) {
    return run_program(job, "ccfuser layer", ccfuser::run_layer);
}

}  // namespace moehub::systems
