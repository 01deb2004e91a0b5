#include "systems/moe/host_steps.hpp"

#include <algorithm>

namespace moehub::systems {

Process exchange_counts(MoeLayer& layer, RowCounts& counts, GpuId gpu, Counting counting) {
    if (layer.backward()) co_return;
    Host& host = layer.host(gpu);
    co_await layer.route(gpu);
    co_await host.launch(counting.operators);
    co_await small_kernels(layer, gpu, counting.kernels);
    if (counting.own_launch) co_await host.launch(1);
    co_await counts.exchange(gpu, counting.bytes);
    if (counting.places > 0) {
        co_await host.launch(counting.places);
        co_await small_kernels(layer, gpu, counting.places);
    }
    co_await host.synchronise();
}

Process sort_received(MoeLayer& layer, GpuId gpu, std::int64_t rows, Bytes width) {
    if (layer.experts_of(gpu).size() < 2) co_return;
    co_await layer.host(gpu).launch(1);
    co_await reorder(layer, gpu, rows, rows, width);
}

Process run_received(MoeLayer& layer, GpuId gpu, Rows& rows) {
    const auto count = static_cast<std::int64_t>(rows.size());
    co_await sort_received(layer, gpu, count, layer.dispatch_bytes());
    co_await convert_rows(layer, gpu, count);
    const std::vector<std::int64_t> by_expert = rows_by_expert(layer, gpu, {rows});
    co_await run_grouped_experts(layer, gpu, by_expert);
    compute(layer, gpu, rows);
    layer.experts_ended(gpu);
}

Process run_down_part(MoeLayer& layer, GpuId gpu, GemmPlan plan, sim::CounterId done) {
    plan.start = 0;
    if (plan.tiles() > 0) co_await run_gemm(layer.card(gpu), plan, KernelName::expert_down);
    layer.endpoint(gpu).increase(done);
}

std::vector<std::vector<Rows>> rows_by_gpu_and_expert(MoeLayer& layer, GpuId gpu) {
    std::vector<std::vector<Rows>> made;
    for (std::uint32_t to = 0; to < layer.gpus.count(); ++to)
        made.emplace_back(layer.experts_of(static_cast<GpuId>(to)).size());
    for (const Row& row : layer.rows_of(gpu)) {
        const std::vector<int>& experts = layer.experts_of(row.rank);
        const auto found = std::find(experts.begin(), experts.end(), row.expert);
        made[row.rank][static_cast<std::size_t>(found - experts.begin())].push_back(
            carried(layer, row));
    }
    return made;
}

}  // namespace moehub::systems
