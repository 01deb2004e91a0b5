// NCCL's choice inside a node: of every algorithm and protocol it estimates
//
//     time = latency + steps · hop + bytes / (bus bandwidth · n / steps)
//
// with n − 1 steps (all-reduce: 2n − 2), and takes the smallest. Latencies, hops and shares of the
// links' bandwidth are those of its tuning tables (NCCL 2.28, src/graph/tuning.cc: base and NVLink
// latencies of rings; 20 GB/s of each 25 GB/s link; LL 141 of a Hopper's 450 GB/s, twice that on
// Blackwell; LL128 0.92). They are estimates: what a call then costs is another matter.
#include "sim/collective/nccl.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace moehub::sim {
namespace {

using Op = Collective::Op;

constexpr double kLinkShare = 0.8;
constexpr double kLlShare = 141.0 / 450.0;
constexpr double kLl128Share = 0.92;
constexpr double kSwitchLatency = 25e-6;  // seconds, as all here
constexpr Bytes kLargestLlSend = 16384;   // NCCL_P2P_LL_THRESHOLD, to a peer

struct Estimate {
    double base;
    double hop;
    double bandwidth;  ///< bytes/s on the bus
};

double seconds(const Estimate& estimate, double n, double steps, Bytes bytes) {
    return estimate.base + steps * estimate.hop +
           static_cast<double>(bytes) / (estimate.bandwidth * n / steps);
}

Estimate ring_estimate(const Machine& machine, Protocol protocol) {
    const double links = kLinkShare * machine.link.bandwidth;
    switch (protocol) {
        case Protocol::ll:
            return {6.6e-6, 0.6e-6, kLlShare * machine.link.bandwidth};
        case Protocol::ll128:
            return {14e-6, 1.9e-6, kLl128Share * links};
        case Protocol::simple:
            break;
    }
    return {8.4e-6, 3.4e-6, links};
}

/// Each GPU heads a channel; both phases of an all-reduce go at once.
Estimate switch_estimate(const Machine& machine, double n) {
    const double channel =
        std::min(machine.nccl.switch_rate, kLinkShare * machine.link.bandwidth / n);
    return {kSwitchLatency, 0, 2 * channel * (n - 1) * machine.nccl.switch_efficiency};
}

bool can_add_in_switch(const Machine& machine, const NcclCall& call) {
    return call.op == Op::all_reduce && call.element == Collective::Element::half &&
           machine.in_switch && machine.nodes == 1 && machine.link.ack_flits > 0;
}

}  // namespace

NcclChoice choose(const Machine& machine, std::uint32_t gpus, const NcclCall& call) {
    const double n = gpus;
    if (call.op == Op::all_to_all) {
        const bool few = call.bytes / static_cast<Bytes>(gpus) <= kLargestLlSend;
        return {false, few ? Protocol::ll : Protocol::simple};
    }
    const double steps = (call.op == Op::all_reduce ? 2 : 1) * (n - 1);
    NcclChoice best{false, Protocol::simple};
    double least = seconds(ring_estimate(machine, Protocol::simple), n, steps, call.bytes);
    const auto consider = [&](const NcclChoice& choice, const Estimate& estimate) {
        const double time = seconds(estimate, n, steps, call.bytes);
        if (time >= least) return;
        least = time;
        best = choice;
    };
    consider({false, Protocol::ll}, ring_estimate(machine, Protocol::ll));
    if (machine.nccl.ll128_used)
        consider({false, Protocol::ll128}, ring_estimate(machine, Protocol::ll128));
    if (can_add_in_switch(machine, call)) consider({true}, switch_estimate(machine, n));
    return best;
}

std::string name_of(const NcclChoice& choice, Op op) {
    if (choice.in_switch) return "nvls";
    const char* protocol = choice.protocol == Protocol::ll      ? "LL"
                           : choice.protocol == Protocol::ll128 ? "LL128"
                                                                : "Simple";
    return fmt::format("{}, {}", op == Op::all_to_all ? "sends" : "ring", protocol);
}

Bytes on_the_wire(Protocol protocol, Bytes bytes) {
    switch (protocol) {
        case Protocol::ll:
            return (bytes + 7) / 8 * 16;
        case Protocol::ll128:
            return (bytes + 119) / 120 * 128;
        case Protocol::simple:
            break;
    }
    return bytes;
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

}  // namespace moehub::sim
