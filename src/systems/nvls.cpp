// All-gather and reduce-scatter through the switch (NVLS): every GPU multicasts its tokens to all,
// each permutes what its experts want and computes it, adds up a token's results, and every GPU
// loads the sums of its own tokens, which the switch adds over all GPUs. No counts, no host: every
// GPU receives every token, wanted or not. Barriers of flags stand between the steps.
#include "systems/buffers.hpp"
#include "systems/mail.hpp"
#include "systems/systems.hpp"

namespace moehub::systems {
namespace {

constexpr std::size_t kBarriers = 2;

struct Nvls {
    explicit Nvls(Layer& of) : layer(of), barriers(of, "barrier", kBarriers), rows(of.gpus()) {
        for (std::uint32_t gpu = 0; gpu < of.gpus(); ++gpu) {
            const auto id = static_cast<GpuId>(gpu);
            moved = of.endpoint(id).add_counter("chunks through the switch");
            for (const Row& row : of.rows_of(id)) rows[row.rank].push_back(buffered(of, row));
        }
    }

    Layer& layer;
    Mail barriers;
    sim::CounterId moved = 0;
    std::vector<Buffer> rows;  ///< by the GPU that computes them; results take their places
};

/// A GPU's own tokens go in chunks, of which as many are underway as the kernel keeps loads in
/// flight.
struct Chunks {
    Bytes bytes;
    Bytes size;
    std::int64_t window;

    Chunks(const Layer& layer, GpuId gpu, Bytes row) : bytes(layer.tokens(gpu) * row) {
        const Machine& machine = layer.input.machine;
        const Bytes in_flight = machine.collective.outstanding_loads * machine.link.payload;
        size = std::max(machine.link.payload, in_flight / 16);
        window = std::max<std::int64_t>(1, in_flight / size);
    }
    std::int64_t count() const { return (bytes + size - 1) / size; }
};

/// Stores go to all GPUs, loads are added up over all. `before` chunks had been moved already.
Process move(Nvls& n, GpuId gpu, sim::Kind kind, Bytes row, std::int64_t before) {
    Layer& layer = n.layer;
    sim::Endpoint& endpoint = layer.endpoint(gpu);
    const Chunks chunks(layer, gpu, row);
    const auto base =
        static_cast<std::uint64_t>(layer.first_token(gpu)) * static_cast<std::uint64_t>(row);
    for (std::int64_t i = 0; i < chunks.count(); ++i) {
        co_await endpoint.until(n.moved, before + i - chunks.window + 1);
        const Bytes offset = i * chunks.size;
        sim::Transfer transfer;
        transfer.kind = kind;
        transfer.group = layer.fabric.node_group(gpu);
        transfer.bytes = std::min(chunks.size, chunks.bytes - offset);
        transfer.address = base + static_cast<std::uint64_t>(offset);
        transfer.answered = n.moved;
        endpoint.post(transfer);
    }
    co_await endpoint.until(n.moved, before + chunks.count());
}

Process gather(Nvls& n, GpuId gpu) {
    Layer& layer = n.layer;
    const Communicating communicating(layer.card(gpu));
    layer.dispatch_began(gpu);
    co_await layer.endpoint(gpu).delay(layer.input.machine.collective.switch_launch);
    if (layer.gpus() > 1) {
        co_await move(n, gpu, sim::Kind::store, layer.dispatch_bytes(), 0);
    }
    co_await meet(layer, n.barriers, gpu, 0, 1);
    layer.dispatch_ended(gpu);
}

Process reduce(Nvls& n, GpuId gpu) {
    Layer& layer = n.layer;
    const Communicating communicating(layer.card(gpu));
    layer.combine_began(gpu);
    co_await layer.endpoint(gpu).delay(layer.input.machine.collective.switch_launch);
    co_await meet(layer, n.barriers, gpu, 1, 1);
    if (layer.gpus() > 1) {
        const std::int64_t before = Chunks(layer, gpu, layer.dispatch_bytes()).count();
        co_await move(n, gpu, sim::Kind::load, layer.combine_bytes(), before);
    }
    layer.combine_ended(gpu);
}

Process run_experts_here(Nvls& n, GpuId gpu) {
    Layer& layer = n.layer;
    Buffer& rows = n.rows[gpu];
    const auto count = static_cast<std::int64_t>(rows.size());
    const std::vector<std::int64_t> by_expert = rows_by_expert(layer, gpu, {rows});
    if (layer.options.compute) {
        co_await reorder(layer, gpu, count, std::min(count, layer.input.routing.tokens));
        co_await run_experts(layer, gpu, by_expert, true);
    }
    layer.first_gemm_ended(gpu);
    if (layer.options.compute) {
        co_await run_activation(layer, gpu, count);
        co_await run_experts(layer, gpu, by_expert, false);
        // Sums for all tokens, zeros where none of a token's experts is here.
        const auto width = static_cast<double>(layer.row_bytes());
        const Traffic sums{static_cast<double>(count) * width,
                           static_cast<double>(layer.input.routing.tokens) * width, Access::narrow};
        co_await run_stream(layer.card(gpu), sums);
    }
    compute(layer, gpu, rows);
    layer.experts_ended(gpu);
}

/// A GPU's own tokens: what the switch has added up.
void take_sums(Nvls& n, GpuId gpu) {
    for (std::uint32_t from = 0; from < n.layer.gpus(); ++from) {
        Buffer own;
        for (const BufferedRow& row : n.rows[from]) {
            if (n.layer.home_of(row.token) == gpu) own.push_back(row);
        }
        take_back(n.layer, static_cast<GpuId>(from), own);
    }
}

Process run_layer(Nvls& n, GpuId gpu) {
    Layer& layer = n.layer;
    co_await layer.route(gpu);
    co_await gather(n, gpu);
    co_await run_experts_here(n, gpu);
    co_await reduce(n, gpu);
    take_sums(n, gpu);
    co_await layer.run_shared(gpu);
    co_await layer.finish(gpu);
}

}  // namespace

LayerResult run_nvls(const Job& job) {
    Layer layer(job);
    Nvls shared(layer);
    run_on_all(layer, shared, [](Nvls& n, GpuId gpu) {
        n.layer.endpoint(gpu).spawn("nvls layer", run_layer(n, gpu));
    });
    return layer.result();
}

}  // namespace moehub::systems
