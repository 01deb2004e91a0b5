// NCCL's CollnetChain: for every NIC of a node a chain of all its GPUs that ends at that NIC's.
// Each adds its own to what comes and passes it on; the last sends the node's sum into the network,
// where leaves and spines add up over the nodes (SHARP), and what comes back goes down the chain
// again.
//
//     NIC: bytes / g each way; NVLink: 2 (g − 1) / g · bytes each way
//
// so NVLink, not the network, is what binds.
#include "sim/collective/nccl.hpp"

namespace moehub::sim {
namespace {

constexpr Bytes kChainChunk = 262144;  // bytes of a chunk of a channel (NCCL, src/enqueue.cc)
constexpr std::int64_t kSteps = 8;     // NCCL_STEPS: chunks that a buffer holds

/// One GPU's link of one chain.
struct ChainLink {
    const Communicator& all;
    std::uint32_t chain;
    std::uint32_t gpus_per_node;
    GpuId gpu;
    std::uint32_t position;
    Bytes begin;
    Bytes bytes;
    double channels;

    ChainLink(const Communicator& communicator, GpuId member, Bytes whole, std::uint32_t number)
        : all(communicator),
          chain(number),
          gpus_per_node(all.fabric().topology().gpus_per_node),
          gpu(member),
          position((all.fabric().topology().rail(gpu) + gpus_per_node - chain - 1) % gpus_per_node),
          begin(part_begin(whole, chain, gpus_per_node)),
          bytes(part(whole, chain, gpus_per_node)),
          channels(std::max(1.0, static_cast<double>(all.costs().switch_channels) /
                                     static_cast<double>(gpus_per_node))) {}

    Bytes chunk() const { return static_cast<Bytes>(channels * static_cast<double>(kChainChunk)); }
    std::int64_t chunks() const { return (bytes + chunk() - 1) / chunk(); }
    bool last() const { return position + 1 == gpus_per_node; }
    GpuId beside(std::uint32_t steps) const {  // the GPU `steps` further in the node
        const std::uint32_t node = gpu / gpus_per_node * gpus_per_node;
        return static_cast<GpuId>(node + (gpu - node + steps) % gpus_per_node);
    }
    Transfer transfer(std::int64_t number) const {
        Transfer transfer;
        transfer.bytes = std::min(chunk(), bytes - number * chunk());
        transfer.address = static_cast<std::uint64_t>(begin + number * chunk());
        return transfer;
    }
    Ps work(const Transfer& transfer) const {
        const ProtocolCosts& simple = all.nccl().simple;
        return simple.slice + work_time(static_cast<double>(transfer.bytes), channels, simple.rate);
    }
};

GroupId rail_group(Communicator& all, GpuId gpu) {
    const Topology& topology = all.fabric().topology();
    std::vector<GpuId> rail(topology.nodes);
    for (std::uint32_t i = 0; i < topology.nodes; ++i)
        rail[i] = static_cast<GpuId>(i * topology.gpus_per_node + topology.rail(gpu));
    return all.fabric().groups().add(rail);
}

/// Sends towards the chain's NIC, and into the network.
Process chain_up(Communicator& all, ChainLink link, std::int64_t before) {
    Endpoint& endpoint = all.endpoint(link.gpu);
    const std::int64_t ahead = kSteps + 2 * std::int64_t{link.gpus_per_node};
    const std::uint32_t back = link.last() ? all.sums_of(link.chain) : all.way_back(link.chain);
    for (std::int64_t i = 0; i < link.chunks(); ++i) {
        Transfer transfer = link.transfer(i);
        if (link.position > 0) {
            std::int64_t& came = all.ring_parts(link.gpu, link.chain);
            co_await endpoint.until(all.ring_counter(link.gpu, link.chain), ++came);
        }
        co_await endpoint.until(all.ring_counter(link.gpu, back), before + i - ahead + 1);
        co_await endpoint.delay(link.work(transfer));
        Ps hop = all.nccl().simple.hop;
        if (link.last()) {
            transfer.kind = EventKind::atomic;
            transfer.group = rail_group(all, link.gpu);
            transfer.dst = all.member((link.gpu + link.gpus_per_node) % all.size());
            transfer.answered = all.ring_counter(link.gpu, back);
            hop = all.nccl().net_hop;
        } else {
            transfer.dst = link.beside(1);
            transfer.arrived = all.ring_counter(transfer.dst, link.chain);
        }
        endpoint.spawn("hop of a chain", hand_over(endpoint, transfer, hop));
    }
}

Process chain_down(Communicator& all, ChainLink link) {
    Endpoint& endpoint = all.endpoint(link.gpu);
    const std::uint32_t back = link.last() ? all.sums_of(link.chain) : all.way_back(link.chain);
    for (std::int64_t i = 0; i < link.chunks(); ++i) {
        co_await endpoint.until(all.ring_counter(link.gpu, back), ++all.ring_parts(link.gpu, back));
        Transfer transfer = link.transfer(i);
        co_await endpoint.delay(link.work(transfer));
        if (link.position == 0) continue;
        transfer.dst = link.beside(link.gpus_per_node - 1);
        transfer.arrived = all.ring_counter(transfer.dst, all.way_back(link.chain));
        endpoint.spawn("hop of a chain", hand_over(endpoint, transfer, all.nccl().simple.hop));
    }
    endpoint.increase(all.counter(link.gpu, Count::gathered, link.gpu));
}

}  // namespace

Process collnet_chain(Communicator& all, GpuId gpu, Bytes bytes) {
    Endpoint& endpoint = all.endpoint(gpu);
    all.begin(gpu);
    co_await endpoint.delay(all.nccl().start + all.nccl().blocks + all.nccl().net_start);
    const std::uint32_t chains = all.fabric().topology().gpus_per_node;
    for (std::uint32_t i = 0; i < chains; ++i) {
        const ChainLink link(all, gpu, bytes, i);
        const std::uint32_t back = link.last() ? all.sums_of(i) : all.way_back(i);
        endpoint.spawn("chain up", chain_up(all, link, all.ring_parts(gpu, back)));
        endpoint.spawn("chain down", chain_down(all, link));
    }
    co_await all.until(gpu, Count::gathered, chains);
}

}  // namespace moehub::sim
