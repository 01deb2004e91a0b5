// Ring: n − 1 steps (all_reduce: twice) of a ring's bytes / n to the next GPU, each handed over by
// software. One ring inside a node; between nodes one ring per rail, each with its share of the
// buffer, so that all NICs work: ring r enters node j at GPU (r − j) mod g, visits all its GPUs in
// turn and leaves by the last one's NIC to the same rail of the next node.
#include "sim/collective/run.hpp"

namespace moehub::sim {
namespace {

struct Ring {
    std::uint32_t number;
    std::uint32_t nodes;
    std::uint32_t gpus_per_node;

    std::uint32_t entry(std::uint32_t node) const {
        return (number + gpus_per_node - node % gpus_per_node) % gpus_per_node;
    }
    /// GPUs before this one in its node.
    std::uint32_t place(std::uint32_t gpu) const {
        const std::uint32_t rail = gpu % gpus_per_node;
        return (rail + gpus_per_node - entry(gpu / gpus_per_node)) % gpus_per_node;
    }
    std::uint32_t position(std::uint32_t gpu) const {
        return gpu / gpus_per_node * gpus_per_node + place(gpu);
    }
    std::uint32_t next(std::uint32_t gpu) const {
        const std::uint32_t node = gpu / gpus_per_node;
        if (place(gpu) + 1 < gpus_per_node) {
            return node * gpus_per_node + (gpu + 1 - node * gpus_per_node) % gpus_per_node;
        }
        const std::uint32_t next_node = (node + 1) % nodes;
        return next_node * gpus_per_node + entry(next_node);
    }
};

std::uint32_t ring_count(const CollectiveRun& run) {
    return run.machine.nodes == 1 ? 1 : static_cast<std::uint32_t>(run.machine.gpus_per_node);
}

Process pass_on(CollectiveRun& run, Endpoint& gpu, Ring ring) {
    const std::uint32_t n = run.gpus();
    const Bytes bytes = part(run.what.bytes, ring.number, ring_count(run));
    const std::uint32_t steps = (n - 1) * (run.what.op == Collective::Op::all_reduce ? 2 : 1);
    const std::uint32_t position = ring.position(gpu.id());
    co_await gpu.delay(run.machine.collective.launch);
    std::int64_t expected = 0;
    for (std::uint32_t step = 0; step < steps; ++step) {
        // The part that this GPU passes on at this step, and the one that comes to it.
        const std::uint32_t out = (position + step * (n - 1)) % n;
        const std::uint32_t in = (out + n - 1) % n;
        Transfer transfer;
        transfer.dst = static_cast<GpuId>(ring.next(gpu.id()));
        transfer.bytes = part(bytes, out, n);
        transfer.address = static_cast<std::uint64_t>(part_begin(bytes, out, n));
        transfer.arrived = ring.number;
        if (transfer.bytes > 0) gpu.post(transfer);
        if (part(bytes, in, n) > 0) ++expected;
        co_await gpu.until(ring.number, expected);
        co_await gpu.delay(run.machine.collective.hop);
    }
    run.finish(gpu);
}

}  // namespace

void spawn_ring(CollectiveRun& run, Endpoint& gpu) {
    const auto nodes = static_cast<std::uint32_t>(run.machine.nodes);
    const auto gpus_per_node = static_cast<std::uint32_t>(run.machine.gpus_per_node);
    for (std::uint32_t i = 0; i < ring_count(run); ++i) {
        gpu.add_counter("parts of a ring");  // counter i belongs to ring i
        gpu.spawn("ring", pass_on(run, gpu, {i, nodes, gpus_per_node}));
    }
}

}  // namespace moehub::sim
