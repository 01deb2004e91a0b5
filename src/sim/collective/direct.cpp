// Direct: every GPU sends each peer its part at once; all_reduce reduces first, then gathers. And
// the exchange of parts of any size.
#include "sim/collective/communicator.hpp"
#include "sim/collective/nccl.hpp"

#include <stdexcept>

namespace moehub::sim {
namespace {

/// One send to each peer: bytes of the whole buffer, which part goes, and what is counted there.
struct Phase {
    Bytes bytes;
    bool own_part;  ///< this member's own part goes to all; else each gets its own
    Count arrived;
};

/// Posts a phase's parts; returns how many were sent.
std::int64_t send_to_peers(Communicator& all, GpuId gpu, const Phase& phase) {
    const std::uint32_t n = all.size();
    const std::uint32_t rank = all.rank(gpu);
    // The part lies at its own address in the peer's buffer.
    const auto place = static_cast<std::uint64_t>(part_begin(phase.bytes, rank, n));
    return post_to_peers(all, gpu, phase.arrived, [&](std::uint32_t peer) {
        return Transfer{.bytes = part(phase.bytes, phase.own_part ? rank : peer, n),
                        .address = (std::uint64_t{peer} << 40) + place,
                        .answered = all.counter(gpu, Count::answered, gpu)};
    });
}

void send_parcels(Communicator& all, GpuId gpu, std::vector<Parcel>& parcels) {
    const std::uint64_t from = std::uint64_t{all.rank(gpu)} << 32;
    post_to_peers(all, gpu, Count::exchanged, [&](std::uint32_t peer) {
        return Transfer{.bytes = std::max<Bytes>(1, parcels[peer].bytes),
                        .address = (std::uint64_t{peer} << 40) + from,
                        .answered = all.counter(gpu, Count::answered, gpu),
                        .message = all.fabric().messages().add(std::move(parcels[peer].message))};
    });
}

}  // namespace

Process direct(Communicator& all, GpuId gpu, Op op, Bytes bytes) {
    const std::uint32_t n = all.size();
    const std::uint32_t rank = all.rank(gpu);
    if (bytes < n && all.calls(gpu) > 0)
        throw std::logic_error("members without a part wait for nobody: no second call");
    const bool gathers = op == Op::all_gather || op == Op::all_reduce;
    all.begin(gpu);
    co_await all.endpoint(gpu).delay(all.costs().launch);
    std::int64_t sent = 0;
    if (op != Op::all_gather) {
        sent += send_to_peers(all, gpu, {bytes, false, Count::reduced});
        co_await all.until(gpu, Count::reduced, part(bytes, rank, n) > 0 ? n - 1 : 0);
    }
    if (gathers) {
        if (op == Op::all_reduce) co_await all.endpoint(gpu).delay(all.costs().hop);
        sent += send_to_peers(all, gpu, {bytes, true, Count::gathered});
        std::int64_t expected = 0;
        for (std::uint32_t i = 0; i < n; ++i)
            if (i != rank && part(bytes, i, n) > 0) ++expected;
        co_await all.until(gpu, Count::gathered, expected);
    }
    co_await all.until(gpu, Count::answered, sent);
}

/// Nobody waits for acknowledgements; they are counted all the same, for the next call.
Process tell(Communicator& all, GpuId gpu, std::vector<Parcel> parcels) {
    all.begin(gpu);
    co_await all.endpoint(gpu).delay(all.costs().launch);
    send_parcels(all, gpu, parcels);
    co_await all.until(gpu, Count::exchanged, all.size() - 1);
    all.expect(gpu, Count::answered, all.size() - 1);
}

Process exchange(Communicator& all, GpuId gpu, std::vector<Parcel> parcels) {
    co_await tell(all, gpu, std::move(parcels));
    co_await all.until(gpu, Count::answered, all.size() - 1);
}

Process barrier(Communicator& all, GpuId gpu, int number) {
    const std::uint64_t from = std::uint64_t{all.rank(gpu)} << 7;
    post_to_peers(all, gpu, Count::met, [&](std::uint32_t peer) {
        return Transfer{.bytes = 1, .address = (std::uint64_t{peer} << 40) + from};
    });
    co_await all.until(gpu, Count::met, std::int64_t{number} * (all.size() - 1));
}

// TensorRT-LLM's one-shot all-reduce: every GPU stores its whole buffer to all others, who see by
// the data itself that it has come (no number is the one that marks an empty place), add up n
// buffers of their own memory, and clear those of the call before:
//
//     time = start + (n − 1) · bytes / link + 2n · bytes / memory

Process one_shot(Communicator& all, GpuId gpu, Bytes bytes) {
    const std::uint32_t n = all.size();
    const std::uint64_t from = std::uint64_t{all.rank(gpu)} << 40;
    all.begin(gpu);
    co_await all.endpoint(gpu).delay(all.nccl().one_shot_start);
    post_to_peers(all, gpu, Count::gathered, [&](std::uint32_t peer) {
        return Transfer{.bytes = bytes, .address = (std::uint64_t{peer} << 48) + from};
    });
    co_await all.until(gpu, Count::gathered, n - 1);
    co_await all.endpoint(gpu).delay(
        work_time(static_cast<double>(bytes), 1, all.nccl().one_shot_memory / (2.0 * n)));
}

}  // namespace moehub::sim
