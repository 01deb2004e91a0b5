/// Calls that do the same over and over: a ring of a thousand GPUs takes thousands of equal steps,
/// gigabytes pass a pipeline in hundreds of equal waves. A part of them is simulated, packet by
/// packet as ever, and the rest is counted from it; the result says so (docs/collectives.md).
#pragma once
#include "sim/collective/nccl.hpp"

#include <functional>
#include <optional>

namespace moehub::sim {

/// What every GPU runs.
using Program = std::function<Process(Communicator&, GpuId)>;
/// `train`: at least, of what travels as one.
struct PartOfCall {
    Program program;
    Bytes train = 0;
};
using RunPart = std::function<CollectiveResult(const Machine&, const PartOfCall&)>;

Process run_call(Communicator& all, GpuId gpu, Collective::Op op, CollectiveCall call);

struct CallOptions {
    double whole = 1;  ///< how long a call may be that is simulated as a whole: of the usual
    std::uint32_t few_steps = 64;      ///< of a ring that tell the rest, at least
    std::optional<Protocol> protocol;  ///< of a ring between nodes, instead of NCCL's choice
};

/// All of a call, or as much as it needs to know the rest.
CollectiveResult run_long_call(const Machine& machine, const Collective& what,
                               const CallOptions& options, const RunPart& run);

/// moehub::run_collective for those who ask for many, or know better than NCCL.
CollectiveResult run_collective(const Machine& machine, const Collective& collective,
                                const CallOptions& options);

}  // namespace moehub::sim
