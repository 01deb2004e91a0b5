/// Trace events, one after the other, as text. Times are picoseconds of the layer; the format has
/// microseconds, and viewers whole nanoseconds.
#pragma once
#include <moehub/units.hpp>

#include <cstdint>
#include <string>
#include <string_view>

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

}  // namespace moehub
