// A ring of NCCL's. Each of n parts of the buffer goes round; a GPU's blocks go through
//
//     send the own · n − 2 times receive and pass on · receive the last     n phases, n − 1 hops
//
// (all-reduce: 2n − 1 and 2n − 2), so that the last phase moves nothing over links and takes its
// time all the same. Blocks do one phase after the other; Simple halves a part, and one half is on
// its way while the other is worked on:
//
//     phase ≈ max(part / link + 2 · slice, part / 2 / link + hop + slice)
//
// All channels of a ring do the same at the same time: they are one stream here. Few bytes use few
// channels: one for every `kLlLane` of a part at least, so a channel's time for them is the same
// until all are in use.
#include "sim/collective/nccl.hpp"

#include <algorithm>

namespace moehub::sim {
namespace {

constexpr Bytes kLlLane = 4096;       // 512 threads, 8 B each
constexpr Bytes kLl128Lane = 5120;    // 640 threads, 8 B each
constexpr Bytes kSimpleLane = 32768;  // 512 threads, 64 B each

Bytes lane_of(Protocol protocol) {
    return protocol == Protocol::ll      ? kLlLane
           : protocol == Protocol::ll128 ? kLl128Lane
                                         : kSimpleLane;
}

std::uint32_t slices_of(Protocol protocol) {
    return protocol == Protocol::ll ? 1 : protocol == Protocol::ll128 ? 4 : 2;
}

/// What a GPU does with one slice of a part.
struct Step {
    std::uint32_t part;
    Bytes bytes;
    Ps work;  ///< of its blocks
    Ps wire;  ///< at least, on its links
};

/// One GPU's way through the phases.
struct Walk {
    const Communicator& all;
    NcclCall call;
    Protocol protocol;
    std::uint32_t n;
    std::uint32_t rank;
    double channels;

    Walk(const Communicator& communicator, GpuId gpu, const NcclCall& what, Protocol how)
        : all(communicator), call(what), protocol(how), n(all.size()), rank(all.rank(gpu)) {
        const Bytes lanes = (part(call.bytes, n - 1, n) + lane_of(how) - 1) / lane_of(how);
        channels = static_cast<double>(std::clamp<Bytes>(lanes, 1, all.nccl().channels));
    }

    std::uint32_t phases() const { return call.op == Collective::Op::all_reduce ? 2 * n - 1 : n; }
    std::uint32_t slices() const { return slices_of(protocol); }
    bool sums(std::uint32_t phase) const {
        return call.op != Collective::Op::all_gather && phase >= 1 && phase < n;
    }
    Step step(std::uint32_t phase, std::uint32_t slice) const {
        Step step;
        step.part = (rank + phase * (n - 1)) % n;
        step.bytes = part(part(call.bytes, step.part, n), slice, slices());
        const bool slow = sums(phase) && call.element == Collective::Element::int8;
        const double rate =
            costs_of(all.nccl(), protocol).rate * (slow ? all.nccl().int8_sum : 1.0);
        step.work = work_time(static_cast<double>(step.bytes), channels, rate);
        step.wire = work_time(static_cast<double>(on_the_wire(protocol, step.bytes)), 1,
                              all.machine().link.bandwidth);
        return step;
    }
    Transfer transfer(const Step& step, std::uint32_t slice) const {
        Transfer transfer;
        transfer.dst = all.member((rank + 1) % n);
        transfer.bytes = on_the_wire(protocol, step.bytes);
        const Bytes begin = part_begin(call.bytes, step.part, n) +
                            part_begin(part(call.bytes, step.part, n), slice, slices());
        transfer.address = static_cast<std::uint64_t>(on_the_wire(protocol, begin));
        transfer.arrived = all.ring_counter(transfer.dst, 0);
        return transfer;
    }
};

Process hand_over(Endpoint& endpoint, Transfer transfer, Ps after) {
    co_await endpoint.delay(after);
    endpoint.post(transfer);
}

}  // namespace

Process protocol_ring(Communicator& all, GpuId gpu, NcclCall call, Protocol protocol) {
    Endpoint& endpoint = all.endpoint(gpu);
    const Walk walk(all, gpu, call, protocol);
    const ProtocolCosts& costs = costs_of(all.nccl(), protocol);
    std::int64_t& expected = all.ring_parts(gpu, 0);
    all.begin(gpu);
    co_await endpoint.delay(all.nccl().start + (walk.channels > 1 ? all.nccl().blocks : 0));
    for (std::uint32_t phase = 0; phase < walk.phases(); ++phase) {
        for (std::uint32_t slice = 0; slice < walk.slices(); ++slice) {
            const Step step = walk.step(phase, slice);
            if (step.bytes == 0) continue;
            if (phase > 0) co_await endpoint.until(all.ring_counter(gpu, 0), ++expected);
            // Stores leave as they are made: what links take longer for goes on meanwhile.
            const Ps ahead = std::min(step.work, step.wire);
            co_await endpoint.delay(costs.slice + step.work - ahead);
            if (phase + 1 < walk.phases())
                endpoint.spawn("hand-over",
                               hand_over(endpoint, walk.transfer(step, slice), costs.hop));
            co_await endpoint.delay(ahead);
        }
    }
}

}  // namespace moehub::sim
