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
//
// Between nodes `net_rings` rings share channels and bytes. What goes through NICs is handed to
// proxies (`net_hop`), and LL128's parts are one slice each.
#include "sim/collective/nccl.hpp"
#include "sim/collective/ring_order.hpp"

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

std::uint32_t slices_of(Protocol protocol, bool between_nodes) {
    if (protocol == Protocol::simple) return 2;
    return protocol == Protocol::ll || between_nodes ? 1 : 4;
}

/// What a GPU does with one slice of a part.
struct Step {
    std::uint32_t part;
    Bytes bytes;
    Ps work;  ///< of its blocks
    Ps wire;  ///< at least, on its links
};

/// One GPU's way through the phases of one of several rings.
struct Walk {
    const Communicator& all;
    NcclCall call;
    Protocol protocol;
    RingOrder order;
    std::uint32_t n;
    std::uint32_t rings;
    std::uint32_t rank;
    std::uint32_t position;
    Bytes begin;  ///< of the ring's share of the buffer
    Bytes bytes;
    double channels;

    Walk(const Communicator& communicator, GpuId gpu, const NcclCall& what, std::uint32_t ring)
        : all(communicator),
          call(what),
          protocol(what.protocol),
          order(ring_order(all, counter_of(communicator, ring))),
          n(all.size()),
          rings(rings_of(all)),
          rank(all.rank(gpu)),
          position(order.position(rank)),
          begin(part_begin(call.bytes, ring, rings)),
          bytes(part(call.bytes, ring, rings)) {
        const Bytes lanes = (part(bytes, n - 1, n) + lane_of(protocol) - 1) / lane_of(protocol);
        channels = std::clamp(static_cast<double>(lanes), 1.0,
                              std::max(1.0, static_cast<double>(all.nccl().channels) / rings));
    }

    /// Rings are spread over the rails.
    static std::uint32_t counter_of(const Communicator& all, std::uint32_t ring) {
        return ring * all.rings() / rings_of(all);
    }
    std::uint32_t phases() const { return phases_of(call, n); }
    std::uint32_t slices() const { return slices_of(protocol, all.rings() > 1); }
    bool sums(std::uint32_t phase) const {
        return call.op != Collective::Op::all_gather && phase >= 1 && phase < n;
    }
    Step step(std::uint32_t phase, std::uint32_t slice) const {
        Step step;
        step.part = static_cast<std::uint32_t>((position + std::uint64_t{phase} * (n - 1)) % n);
        step.bytes = part(part(bytes, step.part, n), slice, slices());
        const bool slow = sums(phase) && call.element == Collective::Element::int8;
        const double rate =
            costs_of(all.nccl(), protocol).rate * (slow ? all.nccl().int8_sum : 1.0);
        step.work = work_time(static_cast<double>(step.bytes), channels, rate);
        step.wire = work_time(static_cast<double>(on_the_wire(protocol, step.bytes)), 1,
                              all.machine().link.bandwidth / rings);
        return step;
    }
    Transfer transfer(const Step& step, std::uint32_t slice) const {
        Transfer transfer;
        transfer.dst = all.member(order.next(rank));
        transfer.bytes = on_the_wire(protocol, step.bytes);
        const Bytes at = begin + part_begin(bytes, step.part, n) +
                         part_begin(part(bytes, step.part, n), slice, slices());
        transfer.address = static_cast<std::uint64_t>(on_the_wire(protocol, at));
        transfer.arrived = all.ring_counter(transfer.dst, order.number);
        return transfer;
    }
    /// Published rings of LL128 between nodes take work and hop one after the other.
    bool streams() const { return protocol != Protocol::ll128 || all.rings() == 1; }
    Ps hop() const {
        const bool near =
            all.fabric().topology().same_node(all.member(rank), all.member(order.next(rank)));
        return costs_of(all.nccl(), protocol).hop + (near ? 0 : all.nccl().net_hop);
    }
};

Process go_round(Communicator& all, GpuId gpu, NcclCall call, std::uint32_t ring) {
    Endpoint& endpoint = all.endpoint(gpu);
    const Walk walk(all, gpu, call, ring);
    const CounterId arrived = all.ring_counter(gpu, walk.order.number);
    const Ps busy = costs_of(all.nccl(), call.protocol).slice;
    std::int64_t& expected = all.ring_parts(gpu, walk.order.number);
    co_await endpoint.delay(ring_start(all, walk.channels > 1));
    for (std::uint32_t phase = 0; phase < walk.phases(); ++phase) {
        for (std::uint32_t slice = 0; slice < walk.slices(); ++slice) {
            const Step step = walk.step(phase, slice);
            if (step.bytes == 0) continue;
            if (phase > 0) co_await endpoint.until(arrived, ++expected);
            // Stores that leave as they are made are on their way before the last is.
            const Ps ahead = walk.streams() ? std::min(step.work, step.wire) : 0;
            co_await endpoint.delay(busy + step.work - ahead);
            if (phase + 1 < walk.phases())
                endpoint.spawn("hand-over",
                               hand_over(endpoint, walk.transfer(step, slice), walk.hop()));
            co_await endpoint.delay(ahead);
        }
    }
}

Process one_of_several(Communicator& all, GpuId gpu, NcclCall call, std::uint32_t ring) {
    co_await go_round(all, gpu, call, ring);
    all.endpoint(gpu).increase(all.counter(gpu, Communicator::gathered, gpu));
}

}  // namespace

Process hand_over(Endpoint& endpoint, Transfer transfer, Ps after) {
    co_await endpoint.delay(after);
    endpoint.post(transfer);
}

std::uint32_t rings_of(const Communicator& all) {
    const auto wanted = static_cast<std::uint32_t>(all.nccl().net_rings);
    return std::min(all.rings(), wanted);
}

std::uint32_t phases_of(const NcclCall& call, std::uint32_t n) {
    const std::uint32_t phases = call.op == Collective::Op::all_reduce ? 2 * n - 1 : n;
    return call.most_steps > 0 ? std::min(phases, call.most_steps + 1) : phases;
}

Ps ring_start(const Communicator& all, bool several_blocks) {
    const NcclCosts& nccl = all.nccl();
    return nccl.start + (several_blocks ? nccl.blocks : 0) + (all.rings() > 1 ? nccl.net_start : 0);
}

Process protocol_ring(Communicator& all, GpuId gpu, NcclCall call) {
    all.begin(gpu);
    const std::uint32_t rings = rings_of(all);
    for (std::uint32_t i = 1; i < rings; ++i) {
        all.endpoint(gpu).spawn("ring", one_of_several(all, gpu, call, i));
    }
    co_await go_round(all, gpu, call, 0);
    co_await all.until(gpu, Communicator::gathered, rings - 1);
}

}  // namespace moehub::sim
