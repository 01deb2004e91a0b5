/// The counters of a trace: what a GPU or a switch did over time, in bins.
#pragma once
#include <moehub/layer.hpp>

#include <string>
#include <vector>

namespace moehub {

struct TraceCounter {
    std::string where;  ///< "gpu 3"
    std::string name;
    Ps bin = 0;
    std::vector<double> values;
};

/// SMs by kernel; packets a µs of each unit; busy share of a GPU's links in each direction, the
/// mean of those to all switches of its node and of its NIC, and of the links between switches.
std::vector<TraceCounter> counters_of(const LayerResult& result);

/// So many bins made one, by their mean.
TraceCounter joined(const TraceCounter& counter, int bins);

/// Events that it takes: one for each change of the value before `end`.
std::int64_t changes(const TraceCounter& counter, Ps end);

}  // namespace moehub
