// Ring: n − 1 steps (all_reduce: twice) of a ring's bytes / n to the next GPU, each handed over by
// software. One ring inside a node; between nodes one ring per rail, each with its share of the
// buffer, so that all NICs work.
#include "sim/collective/ring_order.hpp"

namespace moehub::sim {
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
