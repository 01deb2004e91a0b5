/// What in-switch collectives share: chunks, and the time in which NCCL's blocks copy them into and
/// out of the buffer that switches reach.
#pragma once
#include "sim/collective/nccl.hpp"

namespace moehub::sim {

/// The pipeline moves in chunks: a sixteenth of what may be in flight, in whole packets.
struct Chunks {
    Bytes size;
    std::int64_t window;  ///< chunks in flight

    explicit Chunks(const Machine& machine);
};

/// A load that a group's switch adds up, or a store that it copies.
struct SwitchRequest {
    Kind kind;
    GroupId group;
};
/// From `offset` of the slice on.
Transfer switch_chunk(const SwitchRequest& request, const Slice& slice, Bytes offset, Bytes size);

/// Time to copy what lies in the same part of the slices of `heads` GPUs, one way.
Ps copy_time(const Communicator& all, std::uint32_t heads, Bytes part_of_slice);

/// Where in a slice, of how large waves.
struct SlicePlace {
    const Slice& slice;
    Waves waves;
    Bytes offset;
};
/// When what lies there has been copied in, as much being copied out meanwhile; of waves, all of
/// its wave.
Ps copied_in(const Communicator& all, std::uint32_t heads, const SlicePlace& place);

/// Of NCCL's in-switch all-reduces on so many GPUs of a node.
Ps switch_start(const Communicator& all, std::uint32_t gpus);

}  // namespace moehub::sim
