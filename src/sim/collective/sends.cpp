// All-to-all as NCCL has it, a send and a receive for each peer, itself included. Up to 32 channels
// share them, one for every 64 KiB to a peer at least. A channel moves `peer_rate` into the peer's
// buffer, and a receiver copies a chunk out of its own when all of it has come: the last chunk is
// what one sees of that. Stores of a channel to all peers leave together, a piece at a time.
#include "sim/collective/nccl.hpp"

#include <algorithm>

namespace moehub::sim {
namespace {

using Count = Communicator::Count;

constexpr Bytes kShare = 65536;   // of a channel, at least, to one peer
constexpr Bytes kChunk = 524288;  // of a channel's buffer: NCCL_P2P_NVL_CHUNKSIZE
constexpr std::uint32_t kPieces = 8;

std::int64_t pieces_of(Bytes bytes) {
    return std::min<std::int64_t>(bytes, kPieces);
}

struct Sends {
    const Communicator& all;
    Bytes bytes;
    Protocol protocol;
    std::uint32_t n;
    std::uint32_t rank;

    Bytes to(std::uint32_t peer) const { return part(bytes, peer, n); }
    /// Of one peer; all peers have as many.
    double channels() const {
        const Bytes most = std::max<Bytes>(1, all.nccl().peer_channels / static_cast<int>(n));
        return static_cast<double>(std::clamp<Bytes>((to(n - 1) + kShare - 1) / kShare, 1, most));
    }
    Ps work(std::uint32_t piece) const {
        const Bytes made = on_the_wire(protocol, part(to(n - 1), piece, kPieces));
        return work_time(static_cast<double>(made), channels(), all.nccl().peer_rate);
    }
    Ps last_copy() const {
        if (protocol == Protocol::ll) return 0;
        const double chunk =
            std::min(static_cast<double>(to(n - 1)) / channels(), static_cast<double>(kChunk));
        return work_time(chunk, 1, all.nccl().peer_copy);
    }
};

Process send_piece(const Communicator& all, GpuId gpu, Sends sends, std::uint32_t piece, Ps after) {
    co_await all.endpoint(gpu).delay(after);
    for (std::uint32_t i = 1; i < sends.n; ++i) {
        const std::uint32_t peer = (sends.rank + i) % sends.n;
        const Bytes whole = sends.to(peer);
        Transfer transfer;
        transfer.dst = all.member(peer);
        transfer.bytes = on_the_wire(sends.protocol, part(whole, piece, kPieces));
        transfer.address = (std::uint64_t{peer} << 48) + (std::uint64_t{sends.rank} << 40) +
                           static_cast<std::uint64_t>(part_begin(whole, piece, kPieces));
        transfer.arrived = all.counter(transfer.dst, Count::exchanged, gpu);
        if (transfer.bytes > 0) all.endpoint(gpu).post(transfer);
    }
    all.endpoint(gpu).increase(all.counter(gpu, Count::stored, gpu));
}

}  // namespace

Process sends_and_receives(Communicator& all, GpuId gpu, Bytes bytes, Protocol protocol) {
    Endpoint& endpoint = all.endpoint(gpu);
    const Sends sends{all, bytes, protocol, all.size(), all.rank(gpu)};
    const Ps hop = protocol == Protocol::ll ? all.nccl().ll.hop : all.nccl().peer_hop;
    all.begin(gpu);
    co_await endpoint.delay(all.nccl().start + all.nccl().blocks);
    for (std::uint32_t piece = 0; piece < kPieces; ++piece) {
        co_await endpoint.delay(sends.work(piece));
        endpoint.spawn("sends", send_piece(all, gpu, sends, piece, hop));
    }
    const auto senders = static_cast<std::int64_t>(sends.n) - 1;
    co_await all.until(gpu, Count::exchanged, senders * pieces_of(sends.to(sends.rank)));
    co_await endpoint.delay(sends.last_copy());
    co_await all.until(gpu, Count::stored, kPieces);  // the next call counts elsewhere
}

}  // namespace moehub::sim
