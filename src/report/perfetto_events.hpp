/// What a trace is made of: events, written one after the other as text, and counters. Times are
/// picoseconds of the layer; the format has microseconds, and viewers whole nanoseconds.
#pragma once
#include <moehub/layer.hpp>
#include <moehub/units.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace moehub {

/// A thread of a process; whole processes and counters have thread 0.
struct Track {
    int process = 0;
    int thread = 0;
};

class TraceWriter {
  public:
    void name_process(int process, std::string_view name);  ///< shown in the order of the numbers
    void name_thread(Track track, std::string_view name);
    void slice(Track track, std::string_view name, Ps begin, Ps end);
    void counter(int process, std::string_view name, Ps at, double value);
    /// A step of a flow, bound to the slice that it lies in.
    enum class Flow { start, step, end };
    void flow(Track track, Flow what, std::int64_t id, Ps at);

    std::int64_t events() const { return events_; }
    /// The whole file; `other` is a JSON object.
    std::string finish(std::string_view other) &&;

  private:
    void begin(std::string_view kind, Track track, std::string_view name, Ps at);

    std::string text_ = "{\"traceEvents\":[\n";
    std::int64_t events_ = 0;
};

// Counters: what a GPU or a switch did over time, in bins.

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
