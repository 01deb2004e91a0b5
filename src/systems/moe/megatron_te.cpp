// Megatron-Core's all-to-all dispatcher with Transformer Engine's grouped linear layers: strictly
// one step after the other, issued by an eager host that must know the counts before it can go on.
// The numbers of operators are those of Megatron-Core's MoELayer; each copy of a row travels. Where
// GPUs share experts, a row goes to one of them, which gathers it for all; the way back is the
// same.
#include "layers/exchange.hpp"
#include "systems/moe/host_steps.hpp"

#include <stdexcept>

namespace moehub::systems {
namespace megatron_te {

constexpr Bytes kProbability = 4;  ///< bytes of a gate weight

/// What the programs of all GPUs share.
struct MegatronTe {
    MoeLayer& layer;
    RowCounts counts{layer};
    Shards shards{layer};
    AllToAll dispatch{layer, "rows of a peer", KernelName::dispatch, of_a_shard(layer)};
    AllToAll probabilities{layer, "gate weights of a peer", KernelName::dispatch,
                           of_a_shard(layer)};
    AllToAll combine{layer, "results of a peer", KernelName::combine, of_a_shard(layer)};
};

/// A gate weight for every row.
void check_weights(MegatronTe& m, GpuId gpu) {
    if (count_rows(m.probabilities.received(gpu)) == count_rows(m.dispatch.received(gpu))) return;
    throw std::logic_error("rows came without their gate weights, or weights without rows");
}

/// Rows and their gate weights to the experts; where those are shared, to all who share them.
Process dispatch(MegatronTe& m, GpuId gpu, std::vector<Rows> sent) {
    MoeLayer& layer = m.layer;
    Host& host = layer.host(gpu);
    co_await host.launch(1);
    co_await m.dispatch.exchange(gpu, sent, layer.dispatch_bytes());
    co_await host.launch(1);
    co_await m.probabilities.exchange(gpu, std::move(sent), kProbability);
    check_weights(m, gpu);
    if (!m.shards.shared()) co_return;
    co_await host.launch(1);
    co_await m.shards.gather(gpu, m.dispatch.received_from_all(gpu), layer.dispatch_bytes());
    co_await host.launch(1);
    co_await m.shards.gather(gpu, m.dispatch.received_from_all(gpu), kProbability);
}

Process combine(MegatronTe& m, GpuId gpu, Rows results) {
    MoeLayer& layer = m.layer;
    if (m.shards.shared()) {
        co_await layer.host(gpu).launch(1);
        co_await m.shards.scatter_sums(gpu, results);
    }
    std::vector<Rows> home = m.shards.shared() ? m.shards.sums(gpu) : rows_by_home(layer, results);
    std::vector<Bytes> bytes = m.shards.sum_bytes(home);
    co_await layer.host(gpu).launch(1);
    co_await m.combine.exchange(gpu, std::move(home), std::move(bytes));
    for (const Rows& sums : m.combine.received(gpu)) m.shards.take_back(sums);
}

Process run_layer(MegatronTe& m, GpuId gpu) {
    MoeLayer& layer = m.layer;
    Host& host = layer.host(gpu);
    // Operators: rows for each expert; places: rows to send, rows to receive.
    co_await exchange_counts(
        layer, m.counts, gpu,
        {.own_launch = true, .bytes = kCount * layer.input.model.experts, .places = 2});
    co_await quantise_tokens(layer, gpu);
    layer.gpus.dispatch_began(gpu);
    std::vector<Rows> sent = permuted(layer, gpu);
    const std::int64_t rows = count_rows(sent);
    co_await host.launch(4);  // order of the rows (transpose, select), permutation
    co_await reorder(layer, gpu, rows, layer.tokens(gpu), layer.dispatch_bytes());
    co_await dispatch(m, gpu, std::move(sent));
    layer.gpus.dispatch_ended(gpu);
    Rows received = m.shards.shared() ? m.shards.gathered(gpu) : m.dispatch.received_from_all(gpu);
    const auto rows_in = static_cast<std::int64_t>(received.size());
    co_await sort_received(layer, gpu, rows_in, layer.dispatch_bytes());
    co_await convert_rows(layer, gpu, rows_in);

    const std::vector<std::int64_t> by_expert = rows_by_expert(layer, gpu, {received});
    co_await host.launch(1);
    co_await run_experts(layer, gpu, by_expert, true);
    layer.gpus.first_gemm_ended(gpu);
    co_await run_activation(layer, gpu, rows_in);
    co_await host.launch(1);
    co_await run_experts(layer, gpu, by_expert, false);
    compute(layer, gpu, received);
    layer.experts_ended(gpu);
    co_await layer.gradients(gpu);

    layer.gpus.combine_began(gpu);
    co_await sort_received(layer, gpu, rows_in, layer.combine_bytes());
    co_await combine(m, gpu, std::move(received));
    co_await host.launch(4);  // gate weights (select, multiply), zeros, sum over experts
    const auto width = static_cast<double>(layer.combine_bytes());
    co_await run_for(layer.card(gpu), scatter_add_seconds(layer.card(gpu).gpu, rows, width),
                     KernelName::weighted_sum);
    layer.gpus.combine_ended(gpu);
    co_await finish_with_shared(layer, gpu);
}

}  // namespace megatron_te

LayerResult run_megatron_te(const Job& job) {
    return run_program(job, "megatron-te layer", megatron_te::run_layer);
}

}  // namespace moehub::systems
