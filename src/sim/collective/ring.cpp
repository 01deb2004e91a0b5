// Ring: n − 1 steps (all_reduce: twice) of a ring's bytes / n to the next GPU, each handed over by
// software. One ring inside a node; between nodes one ring per rail, each with its share of the
// buffer, so that all NICs work: ring r enters node j at GPU (r − j) mod g, visits all its GPUs in
// turn and leaves by the last one's NIC to the same rail of the next node.
#include "sim/collective/communicator.hpp"

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
    std::uint32_t before(std::uint32_t gpu) const {
        const std::uint32_t rail = gpu % gpus_per_node;
        return (rail + gpus_per_node - entry(gpu / gpus_per_node)) % gpus_per_node;
    }
    std::uint32_t position(std::uint32_t gpu) const {
        return gpu / gpus_per_node * gpus_per_node + before(gpu);
    }
    std::uint32_t next(std::uint32_t gpu) const {
        const std::uint32_t node = gpu / gpus_per_node;
        if (before(gpu) + 1 < gpus_per_node) {
            return node * gpus_per_node + (gpu + 1 - node * gpus_per_node) % gpus_per_node;
        }
        const std::uint32_t next_node = (node + 1) % nodes;
        return next_node * gpus_per_node + entry(next_node);
    }
};

/// Of some GPUs only: around in the order of their ranks, as if all were in one node.
Ring ring_of(const Communicator& all, std::uint32_t number) {
    const Topology& topology = all.fabric().topology();
    if (all.rings() > 1) return {number, topology.nodes, topology.gpus_per_node};
    return {0, 1, all.size()};
}

Process pass_on(Communicator& all, GpuId gpu, std::uint32_t number, std::uint32_t rounds,
                Bytes whole) {
    Endpoint& endpoint = all.endpoint(gpu);
    const Ring ring = ring_of(all, number);
    const std::uint32_t n = all.size();
    const std::uint32_t rank = all.rank(gpu);
    const Bytes bytes = part(whole, number, all.rings());
    const std::uint32_t position = ring.position(rank);
    co_await endpoint.delay(all.costs().launch);
    std::int64_t& expected = all.ring_parts(gpu, number);
    for (std::uint32_t step = 0; step < rounds * (n - 1); ++step) {
        // The part that this GPU passes on at this step, and the one that comes to it.
        const std::uint32_t out = (position + step * (n - 1)) % n;
        const std::uint32_t in = (out + n - 1) % n;
        Transfer transfer;
        transfer.dst = all.member(ring.next(rank));
        transfer.bytes = part(bytes, out, n);
        transfer.address = static_cast<std::uint64_t>(part_begin(bytes, out, n));
        transfer.arrived = all.ring_counter(transfer.dst, number);
        if (transfer.bytes > 0) endpoint.post(transfer);
        if (part(bytes, in, n) > 0) ++expected;
        co_await endpoint.until(all.ring_counter(gpu, number), expected);
        co_await endpoint.delay(all.costs().hop);
    }
}

Process one_of_several(Communicator& all, GpuId gpu, std::uint32_t number, std::uint32_t rounds,
                       Bytes bytes) {
    co_await pass_on(all, gpu, number, rounds, bytes);
    all.endpoint(gpu).increase(all.counter(gpu, Communicator::gathered, gpu));
}

}  // namespace

Process ring(Communicator& all, GpuId gpu, Collective::Op op, Bytes bytes) {
    const std::uint32_t rounds = op == Collective::Op::all_reduce ? 2 : 1;
    all.begin(gpu);
    for (std::uint32_t i = 1; i < all.rings(); ++i) {
        all.endpoint(gpu).spawn("ring", one_of_several(all, gpu, i, rounds, bytes));
    }
    co_await pass_on(all, gpu, 0, rounds, bytes);
    co_await all.until(gpu, Communicator::gathered, all.rings() - 1);
}

}  // namespace moehub::sim
