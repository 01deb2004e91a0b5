/// What NCCL runs for a call inside a node, and those programs: rings that hand over by a protocol,
/// sends and receives, in-switch sums in waves; and TensorRT-LLM's one-shot all-reduce.
#pragma once
#include "sim/collective/communicator.hpp"

#include <string>

namespace moehub::sim {

/// How data and the news that it is there travel. LL: 4 of data with 4 of flag, half of what
/// travels; LL128: 120 of data in lines of 128 B; Simple: data, a fence, a flag by itself.
enum class Protocol { ll, ll128, simple };

/// What a call is about, as the choice needs it.
struct NcclCall {
    Collective::Op op;
    Bytes bytes;
    Collective::Element element = Collective::Element::half;
};

struct NcclChoice {
    bool in_switch = false;
    Protocol protocol = Protocol::simple;  ///< of a ring, or of sends and receives
};

/// By NCCL's own estimate: latency + bytes / bandwidth of each candidate.
NcclChoice choose(const Machine& machine, std::uint32_t gpus, const NcclCall& call);
std::string name_of(const NcclChoice& choice, Collective::Op op);

/// What of a protocol travels for so many bytes.
Bytes on_the_wire(Protocol protocol, Bytes bytes);
const ProtocolCosts& costs_of(const NcclCosts& nccl, Protocol protocol);

// The programs.
Process nccl(Communicator& all, GpuId gpu, NcclCall call);
Process protocol_ring(Communicator& all, GpuId gpu, NcclCall call, Protocol protocol);
Process sends_and_receives(Communicator& all, GpuId gpu, Bytes bytes, Protocol protocol);
Process one_shot(Communicator& all, GpuId gpu, Bytes bytes);
/// An in-switch all-reduce (nvls.cpp) whose chunks go in waves of this many bytes of a slice, with
/// a pause after each.
struct Waves {
    Bytes bytes = 0;  ///< 0: no waves
    Ps pause = 0;
};
Waves waves_of(const Communicator& all, Bytes bytes);
Process all_reduce_in_waves(Communicator& all, GpuId gpu, Slice slice, Waves waves);

/// Bytes that a number of channels moves at a rate each.
Ps work_time(double bytes, double channels, double rate);

}  // namespace moehub::sim
