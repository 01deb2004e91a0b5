// All-gather and reduce-scatter through the switch (NVLS): every GPU multicasts its tokens to all,
// each permutes what its experts want and computes it, adds up a token's results, and every GPU
// loads the sums of its own tokens, which the switch adds over all GPUs. No counts, no host: every
// GPU receives every token, wanted or not, and behind it whom it chose and with which weight.
// Barriers of flags stand between the steps.
#include "layers/rows.hpp"
#include "systems/systems.hpp"

namespace moehub::systems {
namespace nvls {

constexpr Bytes kChoice = 12;  ///< bytes of an expert's number (8) and its weight, of each choice

/// A token and its choices.
Bytes gathered_bytes(const MoeLayer& layer) {
    return layer.dispatch_bytes() + kChoice * layer.top_k();
}

struct Nvls {
    explicit Nvls(MoeLayer& of);

    MoeLayer& layer;
    sim::Communicator all;
    sim::RegionId tokens = 0;    ///< all GPUs' tokens, on every GPU
    sim::RegionId partials = 0;  ///< sums of what a GPU's experts made of each token
    sim::RegionId totals = 0;    ///< sums of the GPU's own tokens over all GPUs
};

/// Every GPU has the same regions.
Nvls::Nvls(MoeLayer& of) : layer(of), all(of.gpus.fabric, "an in-switch collective") {
    for (std::uint32_t gpu = 0; gpu < of.gpus.count(); ++gpu) {
        sim::Hub& hub = of.gpus.hub(static_cast<GpuId>(gpu));
        sim::RowSpace space;
        space.name = "tokens of all GPUs";
        space.rows = of.input.routing.tokens;
        space.data_bytes = gathered_bytes(of);
        space.allocated = false;
        tokens = hub.add_region(space);
        partials = hub.add_sums({0, space.rows}, of.combine_bytes());
        totals = hub.add_sums({0, space.rows}, of.combine_bytes());
    }
}

/// A GPU's own tokens in a buffer of all.
sim::Slice own_tokens(const MoeLayer& layer, GpuId gpu, Bytes row) {
    sim::Slice slice;
    slice.begin = Bytes{layer.first_token(gpu)} * row;
    slice.bytes = layer.tokens(gpu) * row;
    slice.target.row = layer.first_token(gpu);
    return slice;
}

Process gather(Nvls& n, GpuId gpu) {
    MoeLayer& layer = n.layer;
    const Communicating communicating(layer.card(gpu));
    co_await layer.host(gpu).launch(1);
    layer.gpus.dispatch_began(gpu);
    const sim::Launched launched(layer.card(gpu), KernelName::dispatch);
    for (const Row& row : layer.rows_of(gpu)) layer.note_step(row.token, row.choice, "stored", gpu);
    sim::Slice slice = own_tokens(layer, gpu, gathered_bytes(layer));
    slice.target.region = n.tokens;
    slice.target.numbers = layer.books.input(layer.first_token(gpu));
    co_await multicast_slice(n.all, gpu, slice);
    layer.gpus.dispatch_ended(gpu);
}

Process reduce(Nvls& n, GpuId gpu) {
    MoeLayer& layer = n.layer;
    const Communicating communicating(layer.card(gpu));
    co_await layer.host(gpu).launch(1);
    layer.gpus.combine_began(gpu);
    const sim::Launched launched(layer.card(gpu), KernelName::combine);
    sim::Slice slice = own_tokens(layer, gpu, layer.combine_bytes());
    slice.target.region = n.partials;
    slice.target.into = n.totals;
    co_await reduce_slice(n.all, gpu, slice);
    layer.gpus.combine_ended(gpu);
}

/// The rows that the GPU's experts want, of the tokens that have come.
Rows wanted_rows(Nvls& n, GpuId gpu) {
    MoeLayer& layer = n.layer;
    const sim::RowMemory& memory = layer.gpus.hub(gpu).memory(n.tokens);
    Rows rows;
    for (std::uint32_t home = 0; home < layer.gpus.count(); ++home) {
        for (const Row& row : layer.rows_of(static_cast<GpuId>(home))) {
            if (row.rank != gpu || !memory.complete(row.token)) continue;
            rows.push_back({row.token, row.choice, row.expert, memory.numbers(row.token)});
            layer.note_step(row.token, row.choice, "in memory", gpu);
        }
    }
    return rows;
}

/// A token's results here, weighted and added up.
void add_results(Nvls& n, GpuId gpu, Rows& rows) {
    compute(n.layer, gpu, rows);
    sim::RowSums& sums = n.layer.gpus.hub(gpu).sums(n.partials);
    for (const CarriedRow& row : rows) {
        sums.add_row(row.token, n.layer.books.identity(row.token, row.choice),
                     n.layer.books.weighted(row.token, row.choice, row.numbers));
    }
}

Process run_experts_here(Nvls& n, GpuId gpu) {
    MoeLayer& layer = n.layer;
    Rows rows = wanted_rows(n, gpu);
    const auto count = static_cast<std::int64_t>(rows.size());
    const std::vector<std::int64_t> by_expert = rows_by_expert(layer, gpu, {rows});
    if (layer.options.compute) {
        co_await layer.host(gpu).launch(2);  // rows in the experts' order, the first GEMM
        const std::int64_t distinct = std::min(count, layer.input.routing.tokens);
        co_await reorder(layer, gpu, count, distinct, layer.dispatch_bytes());
        co_await convert_rows(layer, gpu, count);
        co_await run_experts(layer, gpu, by_expert, true);
    }
    layer.gpus.first_gemm_ended(gpu);
    if (layer.options.compute) {
        co_await run_activation(layer, gpu, count);
        co_await layer.host(gpu).launch(1);
        co_await run_experts(layer, gpu, by_expert, false);
        co_await layer.host(gpu).launch(1);
        // Sums for all tokens, zeros where none of a token's experts is here.
        const auto width = static_cast<double>(layer.row_bytes());
        const Traffic sums{static_cast<double>(count) * width,
                           static_cast<double>(layer.input.routing.tokens) * width, Access::narrow};
        co_await run_stream(layer.card(gpu), sums, KernelName::weighted_sum);
    }
    add_results(n, gpu, rows);
    layer.experts_ended(gpu);
}

/// A GPU's own tokens: what the switch has added up.
void take_sums(Nvls& n, GpuId gpu) {
    const sim::RowSums& sums = n.layer.gpus.hub(gpu).sums(n.totals);
    for (std::uint32_t i = 0; i < n.layer.tokens(gpu); ++i) {
        const std::uint32_t token = n.layer.first_token(gpu) + i;
        if (!sums.complete(token, n.layer.gpus.count())) continue;
        n.layer.books.returned_sum(token, sums.identity(token), sums.whole(), sums.numbers(token));
        for (std::uint32_t choice = 0; choice < n.layer.top_k(); ++choice)
            n.layer.note_returned(token, choice);
    }
}

Process run_layer(Nvls& n, GpuId gpu) {
    MoeLayer& layer = n.layer;
    co_await layer.route(gpu);
    co_await quantise_tokens(layer, gpu);
    co_await gather(n, gpu);
    co_await run_experts_here(n, gpu);
    co_await reduce(n, gpu);
    take_sums(n, gpu);
    co_await layer.run_shared(gpu);
    co_await layer.finish(gpu);
}

}  // namespace nvls

LayerResult run_nvls(const Job& job) {
    return run_program(job, "nvls layer", nvls::run_layer);
}

}  // namespace moehub::systems
