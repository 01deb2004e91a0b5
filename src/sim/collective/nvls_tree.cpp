// NCCL's all-reduce between nodes by in-switch sums and trees. GPU i of a node loads the node's
// sums of the i-th part of the buffer from its switches; GPUs of a rail add those up along a tree
// over the nodes, through their NICs; what comes down each stores to its whole node by multicast.
//
// Blocks of a part alternate between two trees. Every node but one or two is a leaf of one of them,
// so a NIC sends and receives about twice a part, whatever the number of nodes; of two nodes, once.
#include "sim/collective/nccl.hpp"

#include <array>

namespace moehub::sim {
namespace {

constexpr Bytes kChunksOfBlock = 4;  // 128 KiB, what a channel of NCCL sends at once
constexpr Bytes kWavesAhead = 4;     // NCCL_STEPS / 2: buffers, loaded and not yet stored
enum Way : std::uint32_t { first_child, second_child, parent, own };  // ways of each tree's blocks

/// Nodes by their lowest set bit: odd ones are leaves, and a node's parent has the next bit.
int parent_of(int node, int nodes) {
    if (node == 0) return -1;
    const int bit = node & -node;
    const int up = (node ^ bit) | (bit << 1);
    return up < nodes ? up : node ^ bit;
}

/// A node's place in one of the two trees. The second is the first in reverse, or, of an odd number
/// of nodes, one further.
struct Tree {
    int up = -1;
    std::uint32_t which_child = 0;  ///< which child of its parent the node is
    std::vector<int> down;

    Tree(int node, int nodes, bool second) {
        const auto name = [&](int at) {
            if (!second) return at;
            return nodes % 2 == 0 ? nodes - 1 - at : (at + 1) % nodes;
        };
        for (int i = 0; i < nodes; ++i) {
            const int above = parent_of(i, nodes);
            if (name(i) == node && above >= 0) up = name(above);
            if (above >= 0 && name(above) == node) down.push_back(name(i));
        }
        for (int i = 0; i < nodes; ++i) {
            if (name(i) == node) return;
            const bool sibling = up >= 0 && parent_of(i, nodes) >= 0;
            if (sibling && name(parent_of(i, nodes)) == up) ++which_child;
        }
    }
};

struct Hop {
    int node;
    std::uint32_t way;
};

/// A GPU's part of the work.
struct Head {
    std::uint32_t rail;
    std::uint32_t gpus_per_node;
    GroupId group;
    Slice slice;
    Waves waves;
    Chunks chunks;
    std::array<Tree, 2> trees;

    Head(Communicator& all, GpuId gpu, Bytes bytes, Bytes part_of)
        : rail(all.fabric().topology().rail(gpu)),
          gpus_per_node(all.fabric().topology().gpus_per_node),
          chunks(all.machine()),
          trees{tree(all, gpu, false), tree(all, gpu, true)} {
        const Topology& topology = all.fabric().topology();
        std::vector<GpuId> node(gpus_per_node);
        for (std::uint32_t i = 0; i < gpus_per_node; ++i)
            node[i] = static_cast<GpuId>(topology.node(gpu) * gpus_per_node + i);
        group = all.fabric().groups().add(node);
        slice.begin = part_begin(bytes, rail, gpus_per_node);
        slice.bytes = part(bytes, rail, gpus_per_node);
        waves = waves_of(all.machine(), gpus_per_node, part_of > 0 ? part_of : bytes);
        waves.pause += all.nccl().net_hop;  // a wave is handed to the proxies, too
    }
    static Tree tree(const Communicator& all, GpuId gpu, bool second) {
        const Topology& topology = all.fabric().topology();
        return Tree(static_cast<int>(topology.node(gpu)), static_cast<int>(topology.nodes), second);
    }
    Bytes block() const { return kChunksOfBlock * chunks.size; }
    Bytes blocks() const { return (slice.bytes + block() - 1) / block(); }
    GpuId on(int node) const {
        return static_cast<GpuId>(static_cast<std::uint32_t>(node) * gpus_per_node + rail);
    }
    static std::uint32_t way(Bytes block, std::uint32_t from) {
        return static_cast<std::uint32_t>(block % 2) * 4 + from;
    }
};

Process load_sums(Communicator& all, GpuId gpu, const Head& head) {
    Endpoint& endpoint = all.endpoint(gpu);
    const Ps begin = endpoint.now();
    const std::int64_t ahead = kWavesAhead * head.waves.bytes / head.chunks.size;
    std::int64_t posted = 0;
    for (Bytes offset = 0; offset < head.slice.bytes; offset += head.chunks.size, ++posted) {
        co_await all.until(gpu, Count::loaded, posted - head.chunks.window + 1);
        co_await all.until(gpu, Count::stored, posted - ahead + 1);
        const Ps ready =
            begin + copied_in(all, head.gpus_per_node, {head.slice, head.waves, offset});
        co_await endpoint.delay(std::max<Ps>(0, ready - endpoint.now()));
        Transfer transfer =
            switch_chunk({EventKind::load, head.group}, head.slice, offset, head.chunks.size);
        transfer.answered = all.counter(gpu, Count::loaded, gpu);
        endpoint.post(transfer);
    }
}

/// A block to the same rail of another node, for `way` of its trees.
void send_block(Communicator& all, GpuId gpu, const Head& head, Bytes block, Hop hop) {
    Transfer transfer;
    transfer.dst = head.on(hop.node);
    transfer.bytes = std::min(head.block(), head.slice.bytes - block * head.block());
    transfer.address = static_cast<std::uint64_t>(head.slice.begin + block * head.block());
    transfer.arrived = all.ring_counter(transfer.dst, all.tree_way(Head::way(block, hop.way)));
    Endpoint& endpoint = all.endpoint(gpu);
    endpoint.spawn("hop of a tree", hand_over(endpoint, transfer, all.nccl().net_hop));
}

/// One tree's blocks: those of the other do not wait for it.
Process tree_up(Communicator& all, GpuId gpu, const Head& head, std::uint32_t number) {
    Endpoint& endpoint = all.endpoint(gpu);
    const std::int64_t chunks = (head.slice.bytes + head.chunks.size - 1) / head.chunks.size;
    const Tree& tree = head.trees[number];
    for (Bytes block = number; block < head.blocks(); block += 2) {
        co_await all.until(gpu, Count::loaded, std::min(chunks, (block + 1) * kChunksOfBlock));
        for (std::uint32_t i = 0; i < tree.down.size(); ++i) {
            const std::uint32_t way = all.tree_way(Head::way(block, i));
            co_await endpoint.until(all.ring_counter(gpu, way), ++all.ring_parts(gpu, way));
        }
        if (tree.up < 0)
            endpoint.increase(all.ring_counter(gpu, all.tree_way(Head::way(block, own))));
        else
            send_block(all, gpu, head, block, {tree.up, tree.which_child});
    }
}

void store_block(Communicator& all, GpuId gpu, const Head& head, Bytes block) {
    const Bytes end = std::min(head.slice.bytes, (block + 1) * head.block());
    for (Bytes offset = block * head.block(); offset < end; offset += head.chunks.size) {
        Transfer transfer =
            switch_chunk({EventKind::store, head.group}, head.slice, offset, head.chunks.size);
        transfer.answered = all.counter(gpu, Count::stored, gpu);
        all.endpoint(gpu).post(transfer);
    }
}

Process tree_down(Communicator& all, GpuId gpu, const Head& head, std::uint32_t number) {
    Endpoint& endpoint = all.endpoint(gpu);
    const Tree& tree = head.trees[number];
    for (Bytes block = number; block < head.blocks(); block += 2) {
        const std::uint32_t way = all.tree_way(Head::way(block, tree.up < 0 ? own : parent));
        co_await endpoint.until(all.ring_counter(gpu, way), ++all.ring_parts(gpu, way));
        for (const int child : tree.down) send_block(all, gpu, head, block, {child, parent});
        store_block(all, gpu, head, block);
    }
}

}  // namespace

Process nvls_tree(Communicator& all, GpuId gpu, Bytes bytes, Bytes part_of) {
    Endpoint& endpoint = all.endpoint(gpu);
    const Head head(all, gpu, bytes, part_of);
    all.begin(gpu);
    co_await endpoint.delay(switch_start(all, head.gpus_per_node) + all.nccl().net_start +
                            2 * head.waves.pause);
    if (all.meets()) co_await barrier(all, gpu);
    endpoint.spawn("reduction loads", load_sums(all, gpu, head));
    for (std::uint32_t tree = 0; tree < 2; ++tree) {
        endpoint.spawn("sums up", tree_up(all, gpu, head, tree));
        endpoint.spawn("sums down", tree_down(all, gpu, head, tree));
    }
    co_await all.until(gpu, Count::stored,
                       (head.slice.bytes + head.chunks.size - 1) / head.chunks.size);
    if (all.meets()) co_await barrier(all, gpu, 2);
    co_await endpoint.delay(
        copy_time(all, head.gpus_per_node, std::min(head.waves.bytes, head.slice.bytes)));
}

}  // namespace moehub::sim
