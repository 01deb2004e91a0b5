/// The order in which rings visit GPUs. Inside a node one ring by rank; between nodes ring r enters
/// node j at GPU (r − j) mod g, visits all its GPUs in turn and leaves by the last one's NIC to the
/// same rail of the next node.
#pragma once
#include "sim/collective/communicator.hpp"

namespace moehub::sim {

struct RingOrder {
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
inline RingOrder ring_order(const Communicator& all, std::uint32_t number) {
    const Topology& topology = all.fabric().topology();
    if (all.rings() > 1) return {number, topology.nodes, topology.gpus_per_node};
    return {0, 1, all.size()};
}

}  // namespace moehub::sim
