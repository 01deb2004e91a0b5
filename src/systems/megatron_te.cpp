// Megatron-Core's all-to-all dispatcher with Transformer Engine's grouped linear layers: strictly
// one step after the other, issued by an eager host that must know the counts before it can go on.
// The numbers of operators are those of Megatron-Core's MoELayer; each copy of a row travels.
#include "systems/megatron_te.hpp"

#include "systems/eager_host.hpp"
#include "systems/exchange.hpp"
#include "systems/systems.hpp"

namespace moehub::systems {
namespace {

constexpr Bytes kCount = 4;        ///< bytes of a count of rows
constexpr Bytes kProbability = 4;  ///< bytes of a gate weight

/// Rows for every GPU, by expert and token.
std::vector<Buffer> permuted(const Layer& layer, GpuId gpu) {
    std::vector<Buffer> buffers(layer.gpus());
    for (const Row& row : layer.rows_of(gpu)) {
        for (int shard = 0; shard < layer.shards(); ++shard) {
            buffers[layer.gpu_of(row.rank, shard)].push_back(
                {row.token, row.slot, row.expert, layer.books.input(row.token)});
        }
    }
    return buffers;
}

std::int64_t count_rows(const std::vector<Buffer>& buffers) {
    std::int64_t rows = 0;
    for (const Buffer& buffer : buffers) rows += static_cast<std::int64_t>(buffer.size());
    return rows;
}

std::vector<std::int64_t> rows_by_expert(const Layer& layer, GpuId gpu,
                                         const std::vector<Buffer>& received) {
    std::vector<std::int64_t> rows(static_cast<std::size_t>(layer.input.model.experts));
    for (const Buffer& buffer : received) {
        for (const BufferedRow& row : buffer) ++rows[row.expert];
    }
    std::vector<std::int64_t> local;
    for (const int expert : layer.experts_of(gpu)) {
        local.push_back(rows[static_cast<std::size_t>(expert)]);
    }
    return local;
}

Process run_one(sim::Card& card, GemmPlan plan, sim::CounterId done) {
    if (plan.tiles() > 0) co_await run_gemm(card, plan);
    card.endpoint.increase(done);
}

/// One GEMM per expert, on streams of their own, as Transformer Engine launches them.
Process run_grouped_linear(Layer& layer, GpuId gpu, std::vector<std::int64_t> rows, bool up) {
    sim::Endpoint& endpoint = layer.endpoint(gpu);
    const sim::CounterId done = endpoint.add_counter("GEMMs of a grouped linear layer");
    for (const std::int64_t count : rows) {
        endpoint.spawn("GEMM", run_one(layer.card(gpu),
                                       up ? layer.plan_up(count) : layer.plan_down(count), done));
    }
    co_await endpoint.until(done, static_cast<std::int64_t>(rows.size()));
}

/// What the experts make of the received rows, in their places.
void compute(Layer& layer, GpuId gpu, std::vector<Buffer>& received) {
    const int shard = layer.shard_of(gpu);
    for (Buffer& buffer : received) {
        for (BufferedRow& row : buffer) {
            layer.books.delivered(row.token, row.slot, shard);
            row.numbers = layer.books.result(row.expert, shard, row.numbers);
        }
    }
}

/// Results are back; the peer's place says which shard they come from.
void take_back(Layer& layer, std::vector<Buffer>& received) {
    for (std::size_t peer = 0; peer < received.size(); ++peer) {
        const int shard = layer.shard_of(static_cast<GpuId>(peer));
        for (const BufferedRow& row : received[peer]) {
            layer.books.returned(row.token, row.slot, shard, row.numbers);
        }
    }
}

/// A pass that reads rows in one order and writes them in another.
Process reorder(Layer& layer, GpuId gpu, std::int64_t rows, std::int64_t distinct) {
    const Gather gather{rows, std::max<std::int64_t>(1, distinct),
                        static_cast<double>(layer.row_bytes())};
    if (rows > 0) co_await run_stream(layer.card(gpu), gather_traffic(layer.card(gpu).gpu, gather));
}

Process small_kernels(Layer& layer, GpuId gpu, int count) {
    const Ps start = layer.input.machine.gpu.kernels.stream_start;
    co_await run_for(layer.card(gpu), count * to_seconds(start));
}

Process run_layer(MegatronTe& m, GpuId gpu) {
    Layer& layer = m.layer;
    EagerHost host(layer.endpoint(gpu), layer.input.machine.gpu.overheads);
    const bool several = layer.experts_of(gpu).size() > 1;

    co_await host.launch(4);  // logits, softmax, top-k, routing map
    co_await layer.route(gpu);
    co_await host.launch(1);  // rows for each expert
    co_await small_kernels(layer, gpu, 1);
    co_await host.launch(1);
    co_await m.counts.exchange(gpu, kCount * layer.input.model.experts);
    co_await host.launch(2);  // rows to send, rows to receive
    co_await small_kernels(layer, gpu, 2);
    co_await host.synchronise();

    std::vector<Buffer> sent = permuted(layer, gpu);
    const std::int64_t rows = count_rows(sent);
    co_await host.launch(4);  // order of the rows (transpose, select), permutation
    co_await reorder(layer, gpu, rows, layer.tokens(gpu));
    co_await host.launch(1);
    co_await m.dispatch.exchange(gpu, sent, layer.row_bytes());
    co_await host.launch(1);
    co_await m.probabilities.exchange(gpu, std::move(sent), kProbability);
    std::vector<Buffer>& received = m.dispatch.received(gpu);
    const std::int64_t rows_in = count_rows(received);
    if (several) co_await host.launch(1);
    if (several) co_await reorder(layer, gpu, rows_in, rows_in);

    const std::vector<std::int64_t> by_expert = rows_by_expert(layer, gpu, received);
    co_await host.launch(1);
    co_await run_grouped_linear(layer, gpu, by_expert, true);
    layer.first_gemm_ended(gpu);
    co_await host.launch(1);  // activation
    co_await run_stream(layer.card(gpu),
                        activation_traffic(static_cast<double>(rows_in) * layer.inner()));
    co_await host.launch(1);
    co_await run_grouped_linear(layer, gpu, by_expert, false);
    compute(layer, gpu, received);

    if (several) co_await host.launch(1);
    if (several) co_await reorder(layer, gpu, rows_in, rows_in);
    co_await host.launch(1);
    co_await m.combine.exchange(gpu, std::move(received), layer.row_bytes());
    take_back(layer, m.combine.received(gpu));
    co_await host.launch(4);  // gate weights (select, multiply), zeros, sum over experts
    const auto width = static_cast<double>(layer.row_bytes());
    co_await run_for(layer.card(gpu), scatter_add_seconds(layer.card(gpu).gpu, rows, width));
    if (layer.input.model.shared_experts > 0) co_await host.launch(3);
    co_await layer.run_shared(gpu);
    layer.ended(gpu);
}

}  // namespace

void spawn_megatron_te(MegatronTe& megatron, GpuId gpu) {
    megatron.layer.endpoint(gpu).spawn("megatron-te layer", run_layer(megatron, gpu));
}

}  // namespace moehub::systems
