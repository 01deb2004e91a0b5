/// Calls that do the same over and over: a ring of a thousand GPUs takes thousands of equal steps,
/// gigabytes pass a pipeline in hundreds of equal waves. A part of them is simulated, packet by
/// packet as ever, and the rest is counted from it; the result says so (docs/collectives.md).
#pragma once
#include "sim/collective/communicator.hpp"

#include <functional>

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

/// All of a call, or as much as it needs to know the rest. `whole`: how long a call may be that is
/// simulated as a whole, as a share of the usual.
CollectiveResult run_long_call(const Machine& machine, const Collective& what, double whole,
                               const RunPart& run);

/// moehub::run_collective for those who ask for many: the sooner a part of a call tells the rest,
/// the less is simulated.
CollectiveResult run_collective(const Machine& machine, const Collective& collective, double whole);

}  // namespace moehub::sim
