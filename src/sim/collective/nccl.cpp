// NCCL's choice: of every algorithm and protocol it estimates
//
//     time = latency + steps · hop + bytes / (bus bandwidth · n / steps)
//
// with n − 1 steps (all-reduce: 2n − 2), some of them through NICs, and takes the smallest.
// Latencies, hops and shares of the links' bandwidth are those of its tuning tables (NCCL 2.28,
// src/graph/tuning.cc: base, NVLink and network latencies of rings; 20 GB/s of each 25 GB/s link;
// LL 141 of a Hopper's 450 GB/s, between two nodes 45 and more 35, twice that on Blackwell; LL128
// 0.92). They are estimates: what a call then costs is another matter.
#include "sim/collective/nccl.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace moehub::sim {
namespace {

constexpr double kLinkShare = 0.8;
constexpr double kLlShare = 141.0 / 450.0;
constexpr double kLl128Share = 0.92;
constexpr double kSwitchLatency = 25e-6;  // seconds, as all latencies here
constexpr double kTreeHop = 14e-6;        // NVLS trees, through NICs
constexpr Bytes kLargestLlSend = 16384;   // NCCL_P2P_LL_THRESHOLD, to a peer

constexpr double kNicShare = 0.96;       // 48 of 50 GB/s
constexpr double kLargestTreeNode = 32;  // GPUs: no published larger node takes NVLS trees

struct Estimate {
    double latency;
    double bandwidth;  ///< bytes/s on the bus
};

/// Over how many GPUs and nodes a call goes, in how many steps; `far` of them through NICs.
struct Extent {
    double n;
    double heads;  ///< GPUs of a node
    int nodes;
    double steps;
    double far;

    Extent(const Machine& machine, std::uint32_t gpus, Op op) : n(gpus) {
        const bool inside = gpus <= static_cast<std::uint32_t>(machine.gpus_per_node);
        heads = inside ? n : machine.gpus_per_node;
        nodes = inside ? 1 : machine.nodes;
        const double rounds = op == Op::all_reduce ? 2 : 1;
        steps = rounds * (n - 1);
        far = rounds * (nodes - 1);
    }
};

double seconds(const Estimate& estimate, const Extent& extent, Bytes bytes) {
    return estimate.latency +
           static_cast<double>(bytes) / (estimate.bandwidth * extent.n / extent.steps);
}

/// Latencies of a protocol's rings, in seconds.
struct RingLatency {
    double base;
    double near;
    double far;

    double of(const Extent& extent) const {
        return base + (extent.steps - extent.far) * near + extent.far * far;
    }
};

Estimate ring_estimate(const Machine& machine, const Extent& extent, const NcclCall& call) {
    const bool several = extent.nodes > 1;
    double links = kLinkShare * machine.link.bandwidth;
    if (extent.nodes > 2)
        links = std::min(links, machine.nccl.net_rings * kNicShare * machine.nic.bandwidth);
    switch (call.protocol) {
        case Protocol::ll: {
            const double share = extent.nodes > 2 ? 35.0 / 450 : several ? 45.0 / 450 : kLlShare;
            const RingLatency latency{6.6e-6, (several ? 1.8 : 1.0) * 0.6e-6, 2.7e-6};
            return {latency.of(extent), share * machine.link.bandwidth};
        }
        case Protocol::ll128:
            return {RingLatency{14e-6, 1.9e-6, 4e-6}.of(extent), kLl128Share * links};
        case Protocol::simple:
            break;
    }
    // NCCL's own correction: a plateau of all-reduces between nodes.
    const bool plateau = several && call.op == Op::all_reduce;
    return {(plateau ? 1.9 : 1.0) * RingLatency{8.4e-6, 3.4e-6, 14e-6}.of(extent), links};
}

/// Each GPU heads a channel; both phases of an all-reduce go at once. Between nodes a tree's NICs
/// carry twice a part.
Estimate switch_estimate(const Machine& machine, const Extent& extent) {
    const double heads = extent.heads;
    const double channel =
        std::min(machine.nccl.switch_rate, kLinkShare * machine.link.bandwidth / heads);
    const double inside = 2 * channel * (heads - 1) * machine.nccl.switch_efficiency;
    if (extent.nodes == 1) return {kSwitchLatency, inside};
    const double nics = kNicShare * machine.nic.bandwidth * heads * (extent.nodes > 2 ? 1 : 2);
    double levels = 0;
    for (int nodes = extent.nodes; nodes > 1; nodes /= 2) ++levels;
    const double bus =
        (extent.n - 1) / extent.n * heads / (heads - 1);  // the bus of all GPUs, not of a node's
    return {kSwitchLatency + 2 * levels * kTreeHop, std::min(inside * bus, nics)};
}

bool can_add_in_switch(const Machine& machine, const Extent& extent, const NcclCall& call) {
    return call.op == Op::all_reduce && call.element == Collective::Element::half &&
           machine.in_switch && machine.link.ack_flits > 0 && extent.heads > 1 &&
           (extent.nodes == 1 || extent.heads <= kLargestTreeNode);
}

bool in_one_node(const Communicator& all) {
    const std::uint32_t node = all.fabric().topology().gpus_per_node;
    return all.member(0) / node == all.member(all.size() - 1) / node;
}

}  // namespace

NcclChoice choose(const Machine& machine, std::uint32_t gpus, const NcclCall& call) {
    if (call.op == Op::all_to_all) {
        const bool few = call.bytes / static_cast<Bytes>(gpus) <= kLargestLlSend;
        return {false, few ? Protocol::ll : Protocol::simple};
    }
    const Extent extent(machine, gpus, call.op);
    NcclChoice best;
    double least = 1e300;
    const auto consider = [&](const NcclChoice& choice, const Estimate& estimate) {
        const double time = seconds(estimate, extent, call.bytes);
        if (time >= least) return;
        least = time;
        best = choice;
    };
    for (const Protocol protocol : {Protocol::simple, Protocol::ll, Protocol::ll128}) {
        if (protocol == Protocol::ll128 && !machine.nccl.ll128_used && extent.nodes == 1) continue;
        NcclCall ring = call;
        ring.protocol = protocol;
        consider({false, protocol}, ring_estimate(machine, extent, ring));
    }
    if (can_add_in_switch(machine, extent, call))
        consider({true}, switch_estimate(machine, extent));
    return best;
}

std::string name_of(const NcclChoice& choice, Op op, bool between_nodes) {
    if (choice.in_switch) return between_nodes ? "nvls-tree" : "nvls";
    if (between_nodes && op == Op::all_to_all) return "sends by rail";
    const char* protocol = choice.protocol == Protocol::ll      ? "LL"
                           : choice.protocol == Protocol::ll128 ? "LL128"
                                                                : "Simple";
    return fmt::format("{}, {}", op == Op::all_to_all ? "sends" : "ring", protocol);
}

Bytes on_the_wire(Protocol protocol, Bytes bytes) {
    if (protocol == Protocol::ll) return (bytes + 7) / 8 * 16;
    return protocol == Protocol::ll128 ? (bytes + 119) / 120 * 128 : bytes;
}

const ProtocolCosts& costs_of(const NcclCosts& nccl, Protocol protocol) {
    return protocol == Protocol::ll      ? nccl.ll
           : protocol == Protocol::ll128 ? nccl.ll128
                                         : nccl.simple;
}

Ps work_time(double bytes, double channels, double rate) {
    constexpr double kLongest = 1e18;  // ps, of which several fit an int64
    return static_cast<Ps>(std::min(bytes / (channels * rate) * kSecond + 0.5, kLongest));
}

/// NCCL's choice for some GPUs of several nodes is not modelled: a ring there, hop by hop
/// (ring.cpp), and sends of everyone to everyone (direct.cpp).
Process nccl(Communicator& all, GpuId gpu, NcclCall call) {
    const bool sends = call.op == Op::all_to_all;
    const bool near = in_one_node(all);
    if (!near && all.rings() == 1)
        return sends ? direct(all, gpu, call.op, call.bytes) : ring(all, gpu, call.op, call.bytes);
    NcclCall whole = call;
    if (call.part_of > 0) whole.bytes = call.part_of;
    const NcclChoice choice = choose(all.machine(), all.size(), whole);
    if (sends) {
        return near ? sends_and_receives(all, gpu, call.bytes, choice.protocol)
                    : sends_by_rail(all, gpu, call.bytes);
    }
    call.protocol = choice.protocol;
    if (!choice.in_switch) return protocol_ring(all, gpu, call);
    if (!near) return nvls_tree(all, gpu, call.bytes, whole.bytes);
    return all_reduce_in_waves(all, gpu, own_slice(all, gpu, call.bytes),
                               waves_of(all.machine(), all.size(), whole.bytes));
}

}  // namespace moehub::sim
