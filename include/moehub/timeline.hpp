/// What happened when in a simulated layer: kernels on SMs, units of hubs and switches, who sent
/// how much to whom, and some rows followed on their way. Links over time are LayerResult::links.
#pragma once
#include <moehub/units.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace moehub {

struct TimelineOptions {
    bool record = false;
    int followed_rows = 64;  ///< at most; spread evenly over all rows
};

/// A kernel on a GPU, from its launch until its last thread block is done.
struct KernelSpan {
    int gpu = 0;
    int kernel = 0;  ///< in Timeline::kernels
    Ps begin = 0;
    Ps end = 0;
};

/// Something that is busy or counts, over time, in bins of equal width from the start on.
struct TimeSeries {
    std::string where;  ///< "gpu 3", "switch 1 of node 0"
    std::string name;   ///< of a kernel, or of a unit: "rpm", "aau", "dam", "merge", "gather", …
    Ps bin = 0;         ///< width
    std::vector<double> values;  ///< of a kernel: SMs it had, mean over the bin; of a unit: what
                                 ///< Timeline says
};

/// A moment of a row on its way: "stored", "left the hub", "in memory", "released", …
struct RowStep {
    std::string what;
    std::string where;
    Ps at = 0;
};

/// A row from the store that sends it to the release of the thread block that reads it, and its
/// result back, as far as the system has these steps; in the order of time.
struct RowPath {
    std::int64_t token = 0;
    int expert = 0;
    int from = 0;  ///< GPU of the token
    int to = 0;    ///< GPU of the expert
    std::vector<RowStep> steps;
};

struct Timeline {
    std::vector<std::string> kernels;  ///< names
    std::vector<KernelSpan> spans;     ///< by GPU, each GPU's in the order of their beginning
    std::vector<TimeSeries> sms;       ///< by GPU and kernel
    std::vector<TimeSeries> units;     ///< packets that a unit handled in each bin
    std::vector<Bytes> sent;           ///< payload from GPU a to GPU b at [a · GPUs + b]
    std::vector<RowPath> rows;         ///< those that were followed
    std::int64_t every = 1;            ///< one row of so many was followed
};

}  // namespace moehub
