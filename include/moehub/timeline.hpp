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
    int followed_rows = 64;  ///< most rows to follow, spread evenly over all rows
};

/// A kernel on a GPU, from its launch until its last thread block is done.
struct KernelSpan {
    int gpu = 0;
    int kernel = 0;  ///< index into Timeline::kernels
    Ps begin = 0;
    Ps end = 0;
};

/// Something that is busy or counts, over time, in bins of equal width from the start on.
struct TimeSeries {
    std::string where;  ///< "gpu 3", "switch 1 of node 0"
    std::string name;  ///< a kernel's name, or a unit's: "rpm", "aau", "dam", "merge", "gather", …
    Ps bin = 0;        ///< width of a bin
    std::vector<double> values;  ///< SMs that a kernel had, mean over the bin; or what a unit
                                 ///< handled in the bin
};

/// A moment of a row on its way: "stored", "left the hub", "at the switch", "in memory",
/// "released", "computed", "result stored", …, "returned". Of what travels in parts, the last.
struct RowStep {
    std::string what;
    std::string where;
    Ps at = 0;
};

/// A row from the store that sends it to the release of the thread block that reads it, and its
/// result back, as far as the system has these steps; in the order of time.
struct RowPath {
    std::int64_t token = 0;
    int expert = 0;  ///< expert of the row; -1 in a tensor-parallel sub-layer
    int from = 0;    ///< GPU of the token; of a sub-layer, one that adds to the row and reads it
    int to = 0;      ///< GPU of the expert; of a sub-layer, the row's home
    std::vector<RowStep> steps;
};

/// Units count packets: of a GPU "rpm" or "egress" requests that left, "aau" or "al" lookups, "dam"
/// or "ts" acknowledgements counted, with " releases" row blocks released, "or" results told; of a
/// switch "gather" answers that are added up or joined, "merge" requests, "group sync" meetings'
/// requests, "sums" parts that leaves and spines add up.
struct Timeline {
    std::vector<std::string> kernels;  ///< names of kernels
    std::vector<KernelSpan> spans;  ///< sorted by GPU, then by beginning; spans of one kernel are
                                    ///< joined where they overlap or nearly touch
    std::vector<TimeSeries> sms;    ///< SMs by GPU and kernel; SMs that a kernel holds are its own
    std::vector<TimeSeries> units;  ///< packets that a unit handled in each bin
    /// Payload that GPU b received from GPU a at [a · GPUs + b]; together LayerResult::payload.
    /// What a switch copies counts for each receiver; what it adds up or merges counts once, as
    /// sent by the GPU whose packet was the first of it.
    std::vector<Bytes> sent;
    std::vector<RowPath> rows;  ///< rows that were followed
    std::int64_t every = 1;     ///< one row of so many was followed
};

}  // namespace moehub
