/// What NCCL runs for a call, and those programs: rings that hand over by a protocol, sends and
/// receives, in-switch sums in waves and trees of them between nodes, chains whose sums the network
/// adds up; and TensorRT-LLM's one-shot all-reduce.
#pragma once
#include "sim/collective/communicator.hpp"

#include <optional>
#include <string>

namespace moehub::sim {

using Algorithm = Collective::Algorithm;
using Op = Collective::Op;
using Count = Communicator::Count;

/// How data and the news that it is there travel. LL: 4 of data with 4 of flag, half of what
/// travels; LL128: 120 of data in lines of 128 B; Simple: data, a fence, a flag by itself.
enum class Protocol { ll, ll128, simple };

/// What a call is about, as the choice needs it.
struct NcclCall {
    Op op;
    Bytes bytes;
    Collective::Element element = Collective::Element::half;
    Protocol protocol = Protocol::simple;  ///< protocol that was chosen, for a ring
    Bytes part_of = 0;                     ///< bytes of the whole call (CollectiveCall::part_of)
    std::uint32_t most_steps = 0;          ///< steps of a ring that are enough; 0: all
};

struct NcclChoice {
    bool in_switch = false;  ///< sums are made in switches; between nodes also in a tree
    Protocol protocol = Protocol::simple;  ///< protocol of a ring, or of sends and receives
};

/// NCCL's choice by its own estimate: latency + bytes / bandwidth of each candidate.
NcclChoice choose(const Machine& machine, std::uint32_t gpus, const NcclCall& call);
std::string name_of(const NcclChoice& choice, Op op, bool between_nodes);

/// Bytes that travel by a protocol for so many bytes of data.
Bytes on_the_wire(Protocol protocol, Bytes bytes);
const ProtocolCosts& costs_of(const NcclCosts& nccl, Protocol protocol);

/// Posts to every other member, the next one's first, what `make(peer)` says, if that is anything;
/// returns how many were posted. `peer` is a rank; `arrived` goes up there.
template <class Make>
std::int64_t post_to_peers(const Communicator& all, GpuId gpu, Count arrived, Make make) {
    std::int64_t posted = 0;
    for (std::uint32_t i = 1; i < all.size(); ++i) {
        const std::uint32_t peer = (all.rank(gpu) + i) % all.size();
        Transfer transfer = make(peer);
        if (transfer.bytes == 0) continue;
        transfer.dst = all.member(peer);
        transfer.arrived = all.counter(transfer.dst, arrived, gpu);
        all.endpoint(gpu).post(transfer);
        ++posted;
    }
    return posted;
}

/// Posts a transfer `after` so much time.
Process hand_over(Endpoint& endpoint, Transfer transfer, Ps after);

// The programs that carry out a call.
Process nccl(Communicator& all, GpuId gpu, NcclCall call);
Process protocol_ring(Communicator& all, GpuId gpu, NcclCall call);
std::uint32_t rings_of(const Communicator& all);
std::uint32_t phases_of(const NcclCall& call, std::uint32_t n);
Ps ring_start(const Communicator& all, bool several_blocks);
Process sends_and_receives(Communicator& all, GpuId gpu, Bytes bytes, Protocol protocol);
/// Sends between nodes: over NVLink to the node's GPU on the receiver's rail first (PXN).
Process sends_by_rail(Communicator& all, GpuId gpu, Bytes bytes);
/// All-reduces of the whole machine; `part_of` decides about chunks.
Process nvls_tree(Communicator& all, GpuId gpu, Bytes bytes, Bytes part_of);
Process collnet_chain(Communicator& all, GpuId gpu, Bytes bytes);
Process one_shot(Communicator& all, GpuId gpu, Bytes bytes);
/// An in-switch all-reduce (nvls.cpp) whose chunks go in waves of this many bytes of a slice, with
/// a pause after each.
struct Waves {
    Bytes bytes = 0;  ///< 0: no waves
    Ps pause = 0;
};
Waves waves_of(const Machine& machine, std::uint32_t heads, Bytes bytes);
Process all_reduce_in_waves(Communicator& all, GpuId gpu, Slice slice, Waves waves);

/// Bytes that a number of channels moves at a rate each.
Ps work_time(double bytes, double channels, double rate);

// What in-switch collectives share: chunks, and the time in which NCCL's blocks copy them into and
// out of the buffer that switches reach.

/// The pipeline moves in chunks: a sixteenth of what may be in flight, in whole packets.
struct Chunks {
    Bytes size;
    std::int64_t window;  ///< chunks in flight

    explicit Chunks(const Machine& machine);
};

/// A load that a group's switch adds up, or a store that it copies.
struct SwitchRequest {
    EventKind kind;
    GroupId group;
};
/// The request for a chunk from `offset` of the slice on.
Transfer switch_chunk(const SwitchRequest& request, const Slice& slice, Bytes offset, Bytes size);

/// Time to copy what lies in the same part of the slices of `heads` GPUs, one way.
Ps copy_time(const Communicator& all, std::uint32_t heads, Bytes part_of_slice);

/// A place in a slice, and how large its waves are.
struct SlicePlace {
    const Slice& slice;
    Waves waves;
    Bytes offset;
};
/// When what lies there has been copied in, as much being copied out meanwhile; of waves, all of
/// its wave.
Ps copied_in(const Communicator& all, std::uint32_t heads, const SlicePlace& place);

/// What NCCL's in-switch all-reduces on so many GPUs of a node take to begin.
Ps switch_start(const Communicator& all, std::uint32_t gpus);

/// How much of a call is simulated: a ring of a thousand GPUs takes thousands of equal steps,
/// gigabytes pass a pipeline in hundreds of equal waves. A part of such calls is simulated, packet
/// by packet as ever, and the rest is counted from it; the result says so (docs/collectives.md).
struct CallOptions {
    double whole = 1;  ///< how long a call may be that is simulated as a whole: of the usual
    std::uint32_t few_steps = 64;      ///< least steps of a ring that tell the rest
    std::optional<Protocol> protocol;  ///< protocol between nodes instead of NCCL's
};

/// Runs moehub::run_collective for those who ask for many, or know better than NCCL.
CollectiveResult run_collective(const Machine& machine, const Collective& collective,
                                const CallOptions& options);

}  // namespace moehub::sim
