// All-to-all as NCCL has it, a send and a receive for each peer, itself included. Up to 32 channels
// share them, one for every 64 KiB to a peer at least. A channel moves `peer_rate` into the peer's
// buffer, and a receiver copies a chunk out of its own when all of it has come: the last chunk is
// what one sees of that. Stores of a channel to all peers leave together, a piece at a time.
#include "sim/collective/nccl.hpp"

#include <algorithm>

namespace moehub::sim {
namespace {

constexpr Bytes kShare = 65536;       // least bytes of a channel to one peer
constexpr Bytes kSendChunk = 524288;  // bytes of a channel's buffer: NCCL_P2P_NVL_CHUNKSIZE
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
    /// Channels of one peer; all peers have as many.
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
            std::min(static_cast<double>(to(n - 1)) / channels(), static_cast<double>(kSendChunk));
        return work_time(chunk, 1, all.nccl().peer_copy);
    }
};

Process send_piece(const Communicator& all, GpuId gpu, Sends sends, std::uint32_t piece, Ps after) {
    co_await all.endpoint(gpu).delay(after);
    post_to_peers(all, gpu, Count::exchanged, [&](std::uint32_t peer) {
        const Bytes whole = sends.to(peer);
        const auto place = static_cast<std::uint64_t>(part_begin(whole, piece, kPieces));
        return Transfer{
            .bytes = on_the_wire(sends.protocol, part(whole, piece, kPieces)),
            .address = (std::uint64_t{peer} << 48) + (std::uint64_t{sends.rank} << 40) + place};
    });
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

// All-to-all between nodes as NCCL has it with PXN: what is for GPUs of rail j in other nodes goes
// over NVLink to the own node's GPU on rail j, whose NIC sends it on, together with what the others
// gave it for the same GPU. NICs carry what direct sends would, and leaves no packet to a spine as
// long as all nodes are on the same ones:
//
//     NIC: (N − g) parts each way; NVLink: (g − 1) + (g − 1) (N − g) / g parts each way
//
// Sends go in pieces, so that NICs work while NVLink does.

namespace {

struct Rails {
    const Communicator& all;
    Bytes bytes;
    std::uint32_t nodes;
    std::uint32_t gpus_per_node;

    Rails(const Communicator& communicator, Bytes whole)
        : all(communicator),
          bytes(whole),
          nodes(all.fabric().topology().nodes),
          gpus_per_node(all.fabric().topology().gpus_per_node) {}

    /// A piece of what every GPU sends to one.
    Bytes to(std::uint32_t gpu, std::uint32_t piece) const {
        return part(part(bytes, gpu, all.size()), piece, kPieces);
    }
    /// A piece of what every GPU sends to all GPUs of a rail, those of node `but` aside.
    Bytes to_rail(std::uint32_t rail, std::uint32_t but, std::uint32_t piece) const {
        Bytes sum = 0;
        for (std::uint32_t node = 0; node < nodes; ++node)
            if (node != but) sum += to(node * gpus_per_node + rail, piece);
        return sum;
    }
    Ps work(GpuId gpu, std::uint32_t piece) const {
        const NcclCosts& nccl = all.nccl();
        const double sent = static_cast<double>(inside(gpu, piece)) * gpus_per_node;
        return work_time(sent, nccl.peer_channels, nccl.peer_rate);
    }
    /// A piece's bytes to a GPU of the own node, with what it is to pass on.
    Bytes inside(std::uint32_t gpu, std::uint32_t piece) const {
        return to(gpu, piece) + to_rail(gpu % gpus_per_node, gpu / gpus_per_node, piece);
    }
    void send_inside(GpuId gpu, std::uint32_t piece) const;
    /// Sends on what the node has for the GPUs of the GPU's rail.
    void send_outside(GpuId gpu, std::uint32_t piece) const;
    struct Sent {
        const char* name;
        GpuId to;
        Bytes bytes;
        Count arrived;
        Ps hop;
    };
    void send(GpuId gpu, std::uint32_t piece, const Sent& sent) const;
    std::int64_t from_inside(GpuId gpu, std::uint32_t piece) const;
    std::int64_t from_outside(GpuId gpu, std::uint32_t piece) const;
};

void Rails::send(GpuId gpu, std::uint32_t piece, const Sent& sent) const {
    if (sent.bytes == 0) return;
    Endpoint& endpoint = all.endpoint(gpu);
    const Transfer transfer{.dst = sent.to,
                            .bytes = sent.bytes,
                            .address = (std::uint64_t{sent.to} << 48) + (std::uint64_t{gpu} << 32) +
                                       (std::uint64_t{piece} << 28),
                            .arrived = all.counter(sent.to, sent.arrived, gpu)};
    endpoint.spawn(sent.name, hand_over(endpoint, transfer, sent.hop));
}

void Rails::send_inside(GpuId gpu, std::uint32_t piece) const {
    const std::uint32_t first = gpu / gpus_per_node * gpus_per_node;
    for (std::uint32_t i = 1; i < gpus_per_node; ++i) {
        const auto to = static_cast<GpuId>(first + (gpu + i) % gpus_per_node);
        send(gpu, piece,
             {"sends inside", to, inside(to, piece), Count::reduced, all.nccl().peer_hop});
    }
}

void Rails::send_outside(GpuId gpu, std::uint32_t piece) const {
    const std::uint32_t node = gpu / gpus_per_node;
    for (std::uint32_t i = 1; i < nodes; ++i) {
        const auto to =
            static_cast<GpuId>((node + i) % nodes * gpus_per_node + gpu % gpus_per_node);
        send(gpu, piece,
             {"sends outside", to, this->to(to, piece) * gpus_per_node, Count::exchanged,
              all.nccl().net_hop});
    }
}

std::int64_t Rails::from_inside(GpuId gpu, std::uint32_t piece) const {
    return inside(gpu, piece) > 0 ? gpus_per_node - 1 : 0;
}

std::int64_t Rails::from_outside(GpuId gpu, std::uint32_t piece) const {
    return to(gpu, piece) > 0 ? nodes - 1 : 0;
}

Process pass_on_pieces(Communicator& all, GpuId gpu, Rails rails) {
    std::int64_t came = 0;
    for (std::uint32_t piece = 0; piece < kPieces; ++piece) {
        came += rails.from_inside(gpu, piece);
        co_await all.until(gpu, Count::reduced, came);
        rails.send_outside(gpu, piece);
    }
    all.endpoint(gpu).increase(all.counter(gpu, Count::stored, gpu));
}

}  // namespace

Process sends_by_rail(Communicator& all, GpuId gpu, Bytes bytes) {
    Endpoint& endpoint = all.endpoint(gpu);
    const Rails rails(all, bytes);
    all.begin(gpu);
    co_await endpoint.delay(all.nccl().start + all.nccl().blocks + all.nccl().net_start);
    endpoint.spawn("passes on", pass_on_pieces(all, gpu, rails));
    std::int64_t expected = 0;
    for (std::uint32_t piece = 0; piece < kPieces; ++piece) {
        co_await endpoint.delay(rails.work(gpu, piece));
        rails.send_inside(gpu, piece);
        expected += rails.from_outside(gpu, piece);
    }
    co_await all.until(gpu, Count::stored, 1);
    co_await all.until(gpu, Count::exchanged, expected);
}

}  // namespace moehub::sim
