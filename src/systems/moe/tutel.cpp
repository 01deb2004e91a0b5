// Tutel (MLSys 2023): every (GPU, expert) pair has room for the same number of rows, the capacity,
// and all of it travels, filled or not. The capacity is cut into `chunks`; while one chunk is
// computed, the next is on its way, on a second stream with its own SMs. No row is dropped: the
// capacity is the largest count of all GPUs, which the host must know to allocate.
#include "layers/mail.hpp"
#include "systems/moe/host_steps.hpp"

namespace moehub::systems {
namespace tutel {

/// Copies of experts are counted by themselves.
std::size_t copies(const MoeLayer& layer) {
    return static_cast<std::size_t>(layer.input.model.experts) *
           static_cast<std::size_t>(layer.input.placement.ranks);
}

std::size_t copy_of(const MoeLayer& layer, const Row& row) {
    return row.rank * static_cast<std::size_t>(layer.input.model.experts) + row.expert;
}

/// Known to the host once all GPUs have told theirs.
std::int64_t largest_count(const MoeLayer& layer) {
    std::int64_t largest = 1;
    for (std::uint32_t gpu = 0; gpu < layer.gpus.count(); ++gpu) {
        std::vector<std::int64_t> counts(copies(layer));
        for (const Row& row : layer.rows_of(static_cast<GpuId>(gpu))) {
            largest = std::max(largest, ++counts[copy_of(layer, row)]);
        }
    }
    return largest;
}

struct Tutel {
    /// Rows of one expert from one GPU in a chunk.
    std::int64_t rows_of(std::size_t chunk) const {
        const auto parts = static_cast<std::int64_t>(chunks);
        const auto at = static_cast<std::int64_t>(chunk);
        return capacity * (at + 1) / parts - capacity * at / parts;
    }

    MoeLayer& layer;
    std::int64_t capacity = largest_count(layer);
    std::size_t chunks =
        static_cast<std::size_t>(std::min<std::int64_t>(layer.system.chunks, capacity));
    std::int64_t experts = static_cast<std::int64_t>(layer.experts_of(0).size());  ///< on one GPU
    RowCounts counts{layer};
    Mail dispatch{layer.gpus, "rows of a chunk", chunks};
    Mail combine{layer.gpus, "results of a chunk", chunks};
    sim::CounterId computed = layer.gpus.add_counter("computed chunks");
};

/// A GPU's rows by chunk and target: the n-th row for an expert is the capacity's n-th.
std::vector<std::vector<Rows>> rows_by_chunk(Tutel& t, GpuId gpu) {
    MoeLayer& layer = t.layer;
    std::vector<std::vector<Rows>> made(t.chunks, std::vector<Rows>(layer.gpus.count()));
    std::vector<std::int64_t> taken(copies(layer));
    for (const Row& row : layer.rows_of(gpu)) {
        const std::int64_t at = taken[copy_of(layer, row)]++;
        const std::int64_t chunk =
            (static_cast<std::int64_t>(t.chunks) * (at + 1) - 1) / t.capacity;
        made[static_cast<std::size_t>(chunk)][row.rank].push_back(carried(layer, row));
    }
    return made;
}

/// One all-to-all of equal parts after the other, each when its chunk is ready.
Process exchange_chunks(Tutel& t, GpuId gpu, Mail& mail, std::vector<std::vector<Rows>>& rows,
                        bool back) {
    MoeLayer& layer = t.layer;
    sim::Endpoint& endpoint = layer.endpoint(gpu);
    const int sms = layer.system.communication_sms;
    const KernelName kernel = back ? KernelName::combine : KernelName::dispatch;
    const Bytes row = back ? layer.combine_bytes() : layer.dispatch_bytes();
    for (std::size_t chunk = 0; chunk < t.chunks; ++chunk) {
        if (back) co_await endpoint.until(t.computed, static_cast<std::int64_t>(chunk) + 1);
        const Communicating communicating(layer.card(gpu));
        layer.card(gpu).blocks.hold(sms, kernel);
        co_await endpoint.delay(layer.input.machine.collective.launch);
        const Bytes bytes = t.experts * t.rows_of(chunk) * row;
        for (std::uint32_t i = 0; i < layer.gpus.count(); ++i) {
            const auto peer = static_cast<GpuId>((gpu + i) % layer.gpus.count());
            mail.send(gpu, peer, chunk, std::move(rows[chunk][peer]), bytes);
        }
        co_await mail.arrived(gpu, chunk, layer.gpus.count());
        layer.card(gpu).blocks.release(sms, kernel);
    }
}

/// The library's stream: all chunks out, then all back.
Process exchange_all(Tutel& t, GpuId gpu, std::vector<std::vector<Rows>>& rows,
                     std::vector<std::vector<Rows>>& results) {
    co_await exchange_chunks(t, gpu, t.dispatch, rows, false);
    co_await exchange_chunks(t, gpu, t.combine, results, true);
}

/// What arrives lies by GPU and expert, what is computed by expert and GPU: a pass before and one
/// after, where a GPU has several experts.
Process run_chunk(Tutel& t, GpuId gpu, std::int64_t rows) {
    MoeLayer& layer = t.layer;
    Host& host = layer.host(gpu);
    const std::vector<std::int64_t> by_expert(static_cast<std::size_t>(t.experts), rows);
    const std::int64_t swizzled = t.experts > 1 ? t.experts * rows : 0;
    co_await host.launch(t.experts > 1 ? 2 : 1);
    co_await reorder(layer, gpu, swizzled, swizzled, layer.dispatch_bytes());
    co_await convert_rows(layer, gpu, t.experts * rows);
    co_await run_experts(layer, gpu, by_expert, true);
    layer.gpus.first_gemm_ended(gpu);
    co_await run_activation(layer, gpu, t.experts * rows);
    co_await host.launch(1);
    co_await run_experts(layer, gpu, by_expert, false);
    if (t.experts > 1) co_await host.launch(1);
    co_await reorder(layer, gpu, swizzled, swizzled, layer.combine_bytes());
}

Process run_layer(Tutel& t, GpuId gpu) {
    MoeLayer& layer = t.layer;
    sim::Endpoint& endpoint = layer.endpoint(gpu);
    Host& host = layer.host(gpu);
    // Operators: one-hot masks, running sums, largest count.
    co_await exchange_counts(layer, t.counts, gpu,
                             {.operators = 3, .kernels = 3, .own_launch = true, .bytes = kCount});
    const std::int64_t room = t.capacity * t.experts * layer.gpus.count();
    const std::int64_t cut = t.chunks > 1 ? room : 0;  // chunks are copied out of it, and back
    std::vector<std::vector<Rows>> rows = rows_by_chunk(t, gpu);
    std::vector<std::vector<Rows>> results(t.chunks);
    co_await quantise_tokens(layer, gpu);
    co_await host.launch(2);
    co_await reorder(layer, gpu, room, layer.tokens(gpu), layer.dispatch_bytes());
    co_await reorder(layer, gpu, cut, cut, layer.dispatch_bytes());
    layer.gpus.dispatch_began(gpu);
    host.issue(static_cast<int>(t.chunks));
    co_await host.launch(0);
    endpoint.spawn("library", exchange_all(t, gpu, rows, results));
    for (std::size_t chunk = 0; chunk < t.chunks; ++chunk) {
        co_await t.dispatch.arrived(gpu, chunk, layer.gpus.count());
        if (chunk + 1 == t.chunks) layer.gpus.dispatch_ended(gpu);
        Rows here = t.dispatch.take(gpu, chunk);
        co_await run_chunk(t, gpu, t.rows_of(chunk) * layer.gpus.count());
        if (chunk == 0) layer.gpus.combine_began(gpu);
        compute(layer, gpu, here);
        results[chunk] = rows_by_home(layer, here);
        co_await host.launch(1);
        endpoint.increase(t.computed);
    }
    layer.experts_ended(gpu);
    for (std::size_t chunk = 0; chunk < t.chunks; ++chunk) {
        co_await t.combine.arrived(gpu, chunk, layer.gpus.count());
        take_back(layer, gpu, t.combine.take(gpu, chunk));
    }
    co_await host.launch(1);  // chunks put together
    co_await reorder(layer, gpu, cut, cut, layer.combine_bytes());
    co_await layer.scale(gpu);
    layer.gpus.combine_ended(gpu);
    co_await finish_with_shared(layer, gpu);
}

}  // namespace tutel

LayerResult run_tutel(const Job& job) {
    return run_program(job, "tutel layer", tutel::run_layer);
}

}  // namespace moehub::systems
