/// The order in which rings visit GPUs. Inside a node one ring by rank; between nodes ring r enters
/// node j at GPU (r − j) mod g, visits all its GPUs in turn and leaves by the last one's NIC to the
/// same rail of the next node.
#include "sim/collective/communicator.hpp"
#include "sim/collective/nccl.hpp"

#include <algorithm>

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
        if (before(gpu) + 1 < gpus_per_node)
            return node * gpus_per_node + (gpu + 1 - node * gpus_per_node) % gpus_per_node;
        const std::uint32_t next_node = (node + 1) % nodes;
        return next_node * gpus_per_node + entry(next_node);
    }
};

/// The order of a ring; one of only some GPUs goes by their ranks, as if all were in one node.
RingOrder ring_order(const Communicator& all, std::uint32_t number) {
    const Topology& topology = all.fabric().topology();
    if (all.rings() > 1) return {number, topology.nodes, topology.gpus_per_node};
    return {0, 1, all.size()};
}

// Ring: n − 1 steps (all_reduce: twice) of a ring's bytes / n to the next GPU, each handed over by
// software. One ring inside a node; between nodes one ring per rail, each with its share of the
// buffer, so that all NICs work.

namespace {

Process pass_on(Communicator& all, GpuId gpu, std::uint32_t number, std::uint32_t rounds,
                Bytes whole) {
    Endpoint& endpoint = all.endpoint(gpu);
    const RingOrder ring = ring_order(all, number);
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

/// Runs one of several rings that a GPU is in at once, and counts its end.
Process count_end(Communicator& all, GpuId gpu, Process ring) {
    co_await ring;
    all.endpoint(gpu).increase(all.counter(gpu, Count::gathered, gpu));
}

}  // namespace

Process ring(Communicator& all, GpuId gpu, Op op, Bytes bytes) {
    const std::uint32_t rounds = op == Op::all_reduce ? 2 : 1;
    all.begin(gpu);
    for (std::uint32_t i = 1; i < all.rings(); ++i)
        all.endpoint(gpu).spawn("ring", count_end(all, gpu, pass_on(all, gpu, i, rounds, bytes)));
    co_await pass_on(all, gpu, 0, rounds, bytes);
    co_await all.until(gpu, Count::gathered, all.rings() - 1);
}

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
    Ps work;  ///< time of the GPU's blocks
    Ps wire;  ///< least time on the GPU's links
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
    Bytes begin;  ///< where the ring's share of the buffer begins
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

    /// The counter of a ring: rings are spread over the rails.
    static std::uint32_t counter_of(const Communicator& all, std::uint32_t ring) {
        return ring * all.rings() / rings_of(all);
    }
    std::uint32_t phases() const { return phases_of(call, n); }
    std::uint32_t slices() const { return slices_of(protocol, all.rings() > 1); }
    bool sums(std::uint32_t phase) const {
        return call.op != Op::all_gather && phase >= 1 && phase < n;
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
    const std::uint32_t phases = call.op == Op::all_reduce ? 2 * n - 1 : n;
    return call.most_steps > 0 ? std::min(phases, call.most_steps + 1) : phases;
}

Ps ring_start(const Communicator& all, bool several_blocks) {
    const NcclCosts& nccl = all.nccl();
    return nccl.start + (several_blocks ? nccl.blocks : 0) + (all.rings() > 1 ? nccl.net_start : 0);
}

Process protocol_ring(Communicator& all, GpuId gpu, NcclCall call) {
    all.begin(gpu);
    const std::uint32_t rings = rings_of(all);
    for (std::uint32_t i = 1; i < rings; ++i)
        all.endpoint(gpu).spawn("ring", count_end(all, gpu, go_round(all, gpu, call, i)));
    co_await go_round(all, gpu, call, 0);
    co_await all.until(gpu, Count::gathered, rings - 1);
}

}  // namespace moehub::sim
