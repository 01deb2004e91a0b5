// All-to-all between nodes as NCCL has it with PXN: what is for GPUs of rail j in other nodes goes
// over NVLink to the own node's GPU on rail j, whose NIC sends it on, together with what the others
// gave it for the same GPU. NICs carry what direct sends would, and leaves no packet to a spine as
// long as all nodes are on the same ones:
//
//     NIC: (N − g) parts each way; NVLink: (g − 1) + (g − 1) (N − g) / g parts each way
//
// Sends go in pieces, so that NICs work while NVLink does.
#include "sim/collective/nccl.hpp"

namespace moehub::sim {
namespace {

using Count = Communicator::Count;

constexpr std::uint32_t kPieces = 8;

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
    /// … to all GPUs of a rail in other nodes than one.
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
    /// Parts, and what is to be passed on, for a GPU of the own node.
    Bytes inside(std::uint32_t gpu, std::uint32_t piece) const {
        return to(gpu, piece) + to_rail(gpu % gpus_per_node, gpu / gpus_per_node, piece);
    }
    /// … for all of them.
    void send_inside(GpuId gpu, std::uint32_t piece) const;
    /// What its node has for the GPUs of its rail.
    void send_outside(GpuId gpu, std::uint32_t piece) const;
    std::int64_t from_inside(GpuId gpu, std::uint32_t piece) const;
    std::int64_t from_outside(GpuId gpu, std::uint32_t piece) const;
};

void Rails::send_inside(GpuId gpu, std::uint32_t piece) const {
    const std::uint32_t node = gpu / gpus_per_node;
    for (std::uint32_t i = 1; i < gpus_per_node; ++i) {
        const std::uint32_t rail = (gpu + i) % gpus_per_node;
        Transfer transfer;
        transfer.dst = static_cast<GpuId>(node * gpus_per_node + rail);
        transfer.bytes = inside(transfer.dst, piece);
        transfer.address = (std::uint64_t{transfer.dst} << 48) + (std::uint64_t{gpu} << 32) +
                           (std::uint64_t{piece} << 28);
        transfer.arrived = all.counter(transfer.dst, Count::reduced, gpu);
        if (transfer.bytes == 0) continue;
        all.endpoint(gpu).spawn("sends inside",
                                hand_over(all.endpoint(gpu), transfer, all.nccl().peer_hop));
    }
}

void Rails::send_outside(GpuId gpu, std::uint32_t piece) const {
    const std::uint32_t node = gpu / gpus_per_node;
    for (std::uint32_t i = 1; i < nodes; ++i) {
        Transfer transfer;
        transfer.dst = static_cast<GpuId>((node + i) % nodes * gpus_per_node + gpu % gpus_per_node);
        transfer.bytes = to(transfer.dst, piece) * gpus_per_node;
        transfer.address = (std::uint64_t{transfer.dst} << 48) + (std::uint64_t{gpu} << 32) +
                           (std::uint64_t{piece} << 28);
        transfer.arrived = all.counter(transfer.dst, Count::exchanged, gpu);
        if (transfer.bytes == 0) continue;
        all.endpoint(gpu).spawn("sends outside",
                                hand_over(all.endpoint(gpu), transfer, all.nccl().net_hop));
    }
}

std::int64_t Rails::from_inside(GpuId gpu, std::uint32_t piece) const {
    return inside(gpu, piece) > 0 ? gpus_per_node - 1 : 0;
}

std::int64_t Rails::from_outside(GpuId gpu, std::uint32_t piece) const {
    return to(gpu, piece) > 0 ? nodes - 1 : 0;
}

Process pass_on(Communicator& all, GpuId gpu, Rails rails) {
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
    endpoint.spawn("passes on", pass_on(all, gpu, rails));
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
