#include "layers/rows.hpp"

#include "sim/gpu/gemm.hpp"
#include "sim/kernels/kernels.hpp"

#include <algorithm>
#include <numeric>

namespace moehub::layers {

CarriedRow carried(MoeLayer& layer, const Row& row) {
    return {row.token, row.choice, row.expert, layer.books.input(row.token)};
}

std::vector<Rows> permuted(MoeLayer& layer, GpuId gpu) {
    std::vector<Rows> buffers(layer.gpus.count());
    for (const Row& row : layer.rows_of(gpu))
        buffers[layer.gpu_of(row.rank, layer.shard_of(gpu))].push_back(carried(layer, row));
    return buffers;
}

RowTargets::RowTargets(const MoeLayer& layer)
    : top_k_(layer.top_k()), targets_(static_cast<std::size_t>(layer.rows())) {
    for (const GpuId gpu : layer.gpus.all()) {
        for (const Row& row : layer.rows_of(gpu)) {
            targets_[std::size_t{row.token} * top_k_ + row.choice] =
                layer.gpu_of(row.rank, layer.shard_of(gpu));
        }
    }
}

std::int64_t count_rows(const std::vector<Rows>& buffers) {
    std::int64_t rows = 0;
    for (const Rows& buffer : buffers) rows += static_cast<std::int64_t>(buffer.size());
    return rows;
}

std::vector<std::int64_t> rows_by_expert(const MoeLayer& layer, GpuId gpu,
                                         const std::vector<Rows>& received) {
    std::vector<std::int64_t> rows(static_cast<std::size_t>(layer.input.model.experts));
    for (const Rows& buffer : received)
        for (const CarriedRow& row : buffer) ++rows[row.expert];
    std::vector<std::int64_t> local;
    for (const int expert : layer.experts_of(gpu))
        local.push_back(rows[static_cast<std::size_t>(expert)]);
    return local;
}

void compute(MoeLayer& layer, GpuId gpu, Rows& rows) {
    const int shard = layer.shard_of(gpu);
    for (CarriedRow& row : rows) {
        layer.books.delivered(row.token, row.choice, shard);
        layer.note_computed(row.token, row.choice, gpu);
        row.numbers = layer.books.result(row.expert, shard, row.numbers);
    }
}

void take_back(MoeLayer& layer, GpuId from, const Rows& results) {
    for (const CarriedRow& row : results) {
        layer.books.returned(row.token, row.choice, layer.shard_of(from), row.numbers);
        layer.note_returned(row.token, row.choice);
    }
}

namespace {

Process run_one(sim::Card& card, GemmPlan plan, KernelName kernel, sim::CounterId done) {
    if (plan.tiles() > 0) co_await run_gemm(card, plan, kernel);
    card.endpoint.increase(done);
}

/// Backward, gradients pass the second matrix first, and of the first there are two where gated.
GemmPlan grouped_plan(const MoeLayer& layer, const std::vector<std::int64_t>& rows, bool up) {
    const bool several = layer.input.model.gated && up != layer.backward();
    const std::int64_t inner = (several ? 2 : 1) * std::int64_t{layer.inner()};
    const std::int64_t hidden = layer.input.model.hidden;
    const FusedEnd end = up ? layer.end_of_up(layer.inner()) : FusedEnd{};
    const Gpu& gpu = layer.input.machine.gpu;
    if (gpu.library != "torch" && !layer.backward())
        return plan_expert_gemm(gpu, {rows, up ? hidden : inner, up ? inner : hidden,
                                      layer.system.expert_format, end.stored, end.read});
    GroupedShape shape{rows, up ? hidden : inner, up ? inner : hidden};
    shape.fp8 = layer.system.narrow_experts();
    shape.stored = end.stored;
    shape.beside = end.read;
    shape.cold = true;  // other layers' weights went through L2 since
    return plan_grouped_gemm(gpu, shape);
}

}  // namespace

Process run_experts(MoeLayer& layer, GpuId gpu, std::vector<std::int64_t> rows, bool up) {
    sim::Endpoint& endpoint = layer.endpoint(gpu);
    const sim::CounterId done = endpoint.add_counter("GEMMs of a grouped linear layer");
    for (const std::int64_t count : rows) {
        endpoint.spawn("GEMM",
                       run_one(layer.card(gpu), up ? layer.plan_up(count) : layer.plan_down(count),
                               up ? KernelName::expert_up : KernelName::expert_down, done));
    }
    co_await endpoint.until(done, static_cast<std::int64_t>(rows.size()));
    endpoint.drop_counter(done);
}

Process run_activation(MoeLayer& layer, GpuId gpu, std::int64_t rows) {
    if (layer.system.fused_activation || !layer.options.compute) co_return;
    co_await layer.host(gpu).launch(1);
    if (rows == 0) co_return;
    const Traffic traffic = layer.activation(rows, layer.inner());
    co_await run_stream(layer.card(gpu), traffic, KernelName::activation);
}

Process reorder(MoeLayer& layer, GpuId gpu, std::int64_t rows, std::int64_t distinct, Bytes width) {
    const Gather gather{rows, std::max<std::int64_t>(1, distinct), static_cast<double>(width)};
    const Traffic traffic = gather_traffic(layer.card(gpu).gpu, gather);
    if (rows > 0) co_await run_stream(layer.card(gpu), traffic, KernelName::reorder);
}

Process small_kernels(MoeLayer& layer, GpuId gpu, int count) {
    const Ps start = layer.input.machine.gpu.kernels.stream_start;
    co_await run_for(layer.card(gpu), count * to_seconds(start), KernelName::addresses);
}

std::vector<Rows> rows_by_peer(const MoeLayer& layer, GpuId gpu) {
    std::vector<Rows> buffers(layer.gpus.count());
    for (const Row& row : layer.rows_of(gpu)) {
        buffers[layer.gpu_of(row.rank, 0)].push_back(
            {row.token, row.choice, row.expert, layer.books.input(row.token)});
    }
    for (Rows& buffer : buffers) {
        std::sort(buffer.begin(), buffer.end(), [](const CarriedRow& a, const CarriedRow& b) {
            return a.token != b.token ? a.token < b.token : a.choice < b.choice;
        });
    }
    return buffers;
}

std::int64_t copies_in(const Rows& rows) {
    std::int64_t copies = 0;
    for (std::size_t i = 0; i < rows.size(); ++i)
        if (i == 0 || rows[i].token != rows[i - 1].token) ++copies;
    return copies;
}

std::vector<Rows> cut(const Rows& rows, std::int64_t copies) {
    std::vector<Rows> pieces;
    std::int64_t in_piece = copies;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (i == 0 || rows[i].token != rows[i - 1].token) {
            if (in_piece == copies) {
                pieces.emplace_back();
                in_piece = 0;
            }
            ++in_piece;
        }
        pieces.back().push_back(rows[i]);
    }
    return pieces;
}

std::vector<Rows> rows_by_home(const MoeLayer& layer, const Rows& rows) {
    std::vector<Rows> buffers(layer.gpus.count());
    for (const CarriedRow& row : rows) buffers[layer.home_of(row.token)].push_back(row);
    return buffers;
}

double expert_bytes(const MoeLayer& layer) {
    return bytes_of(layer.system.expert_format) * static_cast<double>(layer.input.model.hidden);
}

Process quantise_tokens(MoeLayer& layer, GpuId gpu) {
    if (!layer.options.compute || !layer.dispatches_fp8()) co_return;
    co_await layer.host(gpu).launch(1);
    const double elements = static_cast<double>(layer.tokens(gpu)) * layer.input.model.hidden;
    const Traffic traffic = quantise_traffic(elements, 128);
    co_await run_stream(layer.card(gpu), traffic, KernelName::quantise);
}

Process convert_rows(MoeLayer& layer, GpuId gpu, std::int64_t rows) {
    if (!layer.options.compute || layer.dispatches_fp8() == layer.system.narrow_experts())
        co_return;
    co_await layer.host(gpu).launch(1);
    if (rows == 0) co_return;
    const auto count = static_cast<double>(rows);
    const Traffic traffic{.read = count * static_cast<double>(layer.dispatch_bytes()),
                          .written = count * expert_bytes(layer)};
    co_await run_stream(layer.card(gpu), traffic, KernelName::convert);
}

Process run_grouped_experts(MoeLayer& layer, GpuId gpu, std::vector<std::int64_t> rows) {
    const std::int64_t all = std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
    const bool runs = layer.options.compute && all > 0;
    const GemmPlan up = runs ? grouped_plan(layer, rows, true) : GemmPlan{};
    const GemmPlan down = runs ? grouped_plan(layer, rows, false) : GemmPlan{};
    co_await layer.host(gpu).launch(1);
    if (runs) co_await run_gemm(layer.card(gpu), up, KernelName::expert_up);
    layer.gpus.first_gemm_ended(gpu);
    co_await run_activation(layer, gpu, all);
    co_await layer.host(gpu).launch(1);
    if (runs) co_await run_gemm(layer.card(gpu), down, KernelName::expert_down);
}

Process finish_with_shared(MoeLayer& layer, GpuId gpu) {
    co_await layer.run_shared(gpu);
    co_await layer.finish(gpu);
}

Process run_shared_beside(MoeLayer& layer, GpuId gpu, sim::CounterId done) {
    co_await layer.run_shared(gpu);
    layer.endpoint(gpu).increase(done);
}

}  // namespace moehub::layers
