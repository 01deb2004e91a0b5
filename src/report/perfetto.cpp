#include "report/perfetto.hpp"

#include "base/json.hpp"
#include "report/number.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include <fmt/format.h>

namespace moehub {
namespace {

/// A thread of a process; whole processes and counters have thread 0.
struct Track {
    int process = 0;
    int thread = 0;
};

std::string quoted_json(std::string_view text) {
    return Json(text).dump(-1);
}

/// Microseconds, to the nanosecond.
std::string time_text(Ps time) {
    return fmt::format("{}.{:03}", time / kUs, time % kUs / kNs);
}

/// Writes events one after the other as text. Times are picoseconds of the layer; the format has
/// microseconds, and viewers whole nanoseconds.
class TraceWriter {
  public:
    /// Processes are shown in the order of their numbers.
    void name_process(int process, std::string_view name) {
        begin("M", {process, 0}, "process_name", 0);
        text_ += fmt::format(R"(,"args":{{"name":{}}}}})", quoted_json(name));
        begin("M", {process, 0}, "process_sort_index", 0);
        text_ += fmt::format(R"(,"args":{{"sort_index":{}}}}})", process);
    }

    void name_thread(Track track, std::string_view name) {
        begin("M", track, "thread_name", 0);
        text_ += fmt::format(R"(,"args":{{"name":{}}}}})", quoted_json(name));
        begin("M", track, "thread_sort_index", 0);
        text_ += fmt::format(R"(,"args":{{"sort_index":{}}}}})", track.thread);
    }

    /// Both ends are rounded alike, so that what lies in another slice still does.
    void slice(Track track, std::string_view name, Ps first, Ps last) {
        begin("X", track, name, first);
        const Ps length = (last / kNs - first / kNs) * kNs;
        text_ += fmt::format(R"(,"dur":{}}})", time_text(length));
    }

    void counter(int process, std::string_view name, Ps at, double value) {
        begin("C", {process, 0}, name, at);
        fmt::format_to(std::back_inserter(text_), R"(,"args":{{"value":{:.4g}}}}})", value);
    }

    enum class Flow { start, step, end };
    /// A step of a flow, bound to the slice that it lies in.
    void flow(Track track, Flow what, std::int64_t id, Ps at) {
        constexpr std::string_view kKinds[] = {"s", "t", "f"};
        begin(kKinds[static_cast<std::size_t>(what)], track, "row", at);
        text_ +=
            fmt::format(R"(,"cat":"row","id":{}{}}})", id, what == Flow::end ? R"(,"bp":"e")" : "");
    }

    std::int64_t events() const { return events_; }

    /// The whole file; `other` is a JSON object.
    std::string finish(std::string_view other) && {
        text_ += fmt::format("\n],\n\"displayTimeUnit\":\"ns\",\n\"otherData\":{}}}\n", other);
        return std::move(text_);
    }

  private:
    void begin(std::string_view kind, Track track, std::string_view name, Ps at) {
        if (events_++ > 0) text_ += ",\n";
        fmt::format_to(std::back_inserter(text_),
                       R"({{"ph":"{}","pid":{},"tid":{},"ts":{},"name":{})", kind, track.process,
                       track.thread, time_text(at), quoted_json(name));
    }

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

bool is_gpu(const std::string& name) {
    return name.starts_with("gpu ");
}

/// Links of one component that go the same way, taken together.
using LinkGroup = std::vector<const LinkUse*>;
using Groups = std::map<std::pair<std::string, std::string>, LinkGroup>;

/// Links by component and way: a GPU's in both directions; those between switches are the sender's.
Groups groups_of(const std::vector<LinkUse>& links) {
    Groups groups;
    for (const LinkUse& link : links) {
        const bool network = link.from.starts_with("leaf") || link.to.starts_with("leaf");
        const std::string ports =
            network && (is_gpu(link.from) || is_gpu(link.to)) ? "NIC" : "links";
        if (is_gpu(link.from) || !is_gpu(link.to))
            groups[{link.from, ports + " out, % busy"}].push_back(&link);
        if (is_gpu(link.to)) groups[{link.to, ports + " in, % busy"}].push_back(&link);
    }
    return groups;
}

/// Bins of different links differ in width by powers of two: the widest is everybody's.
TraceCounter mean_of(const LinkGroup& links, std::string where, std::string name) {
    TraceCounter made{std::move(where), std::move(name), 0, {}};
    for (const LinkUse* link : links) made.bin = std::max(made.bin, link->bin);
    for (const LinkUse* link : links) {
        const auto fold = static_cast<std::size_t>(made.bin / link->bin);
        for (std::size_t i = 0; i < link->bins.size(); ++i) {
            if (i / fold >= made.values.size()) made.values.resize(i / fold + 1);
            made.values[i / fold] += static_cast<double>(link->bins[i]);
        }
    }
    const double whole = static_cast<double>(made.bin) * static_cast<double>(links.size());
    for (double& value : made.values) value = std::min(100.0, 100 * value / whole);
    return made;
}

/// SMs by kernel; packets a µs of each unit; busy share of a GPU's links in each direction, the
/// mean of those to all switches of its node and of its NIC, and of the links between switches.
std::vector<TraceCounter> counters_of(const LayerResult& result) {
    std::vector<TraceCounter> list;
    for (const TimeSeries& sms : result.timeline.sms)
        list.push_back({sms.where, "SMs: " + sms.name, sms.bin, sms.values});
    for (const TimeSeries& unit : result.timeline.units) {
        TraceCounter made{unit.where, unit.name + ", packets per µs", unit.bin, unit.values};
        if (unit.name.ends_with("releases")) made.name = unit.name + " per µs";
        for (double& value : made.values) value /= to_us(unit.bin);
        list.push_back(std::move(made));
    }
    for (const auto& [key, links] : groups_of(result.links))
        list.push_back(mean_of(links, key.first, key.second));
    return list;
}

/// So many bins made one, by their mean.
TraceCounter joined(const TraceCounter& counter, int bins) {
    const auto fold = static_cast<std::size_t>(bins);
    TraceCounter made{counter.where, counter.name, counter.bin * bins, {}};
    made.values.resize((counter.values.size() + fold - 1) / fold);
    for (std::size_t i = 0; i < counter.values.size(); ++i)
        made.values[i / fold] += counter.values[i] / bins;
    return made;
}

/// Events that a counter takes: one for each change of the value before `end`.
std::int64_t changes(const TraceCounter& counter, Ps end) {
    std::int64_t count = 1;  // back to zero
    for (std::size_t i = 0; i < counter.values.size(); ++i) {
        if (static_cast<Ps>(i) * counter.bin >= end) break;
        count += i == 0 || counter.values[i] != counter.values[i - 1];
    }
    return count;
}

// Layers

std::string name_of_row(const RowPath& row) {
    if (row.expert < 0) return fmt::format("row: token {}", row.token);
    return fmt::format("row: token {}, expert {}", row.token, row.expert);
}

constexpr int kFirstRow = 100;  ///< thread of the first followed row; kernels' come before

/// One layer's part of the file.
class LayerTrace {
  public:
    LayerTrace(TraceWriter& out, const TracedLayer& layer, int first_process)
        : out_(out), layer_(layer), result_(*layer.result), next_(first_process) {}

    void write(const std::vector<TraceCounter>& counters, int joined_bins,
               std::int64_t first_flow) {
        int gpus = 0;
        for (const KernelSpan& span : result_.timeline.spans) gpus = std::max(gpus, span.gpu + 1);
        for (int gpu = 0; gpu < gpus; ++gpu) process(fmt::format("gpu {}", gpu));
        write_kernels();
        for (const TraceCounter& counter : counters) write_counter(joined(counter, joined_bins));
        int thread = kFirstRow;
        for (const RowPath& row : result_.timeline.rows) write_row(row, thread++, first_flow++);
    }

    int next_process() const { return next_; }

  private:
    struct Slice {
        Track track;
        std::string name;
        Ps begin = 0;
        Ps end = 0;
    };

    int process(const std::string& where) {
        const auto [found, added] = processes_.try_emplace(where, next_);
        if (added) out_.name_process(next_++, fmt::format("{} · {}", layer_.name, where));
        return found->second;
    }

    Ps within(Ps time) const { return std::clamp<Ps>(time, 0, result_.time); }

    /// The last bin reaches beyond the end: what it counted, it counted before.
    void write_counter(const TraceCounter& counter) {
        const int of = process(counter.where);
        Ps at = 0;
        double last = -1;
        for (const double value : counter.values) {
            if (at >= result_.time) break;
            const Ps inside = std::min(counter.bin, result_.time - at);
            const double mean =
                value * static_cast<double>(counter.bin) / static_cast<double>(inside);
            if (mean != last) out_.counter(of, counter.name, at, mean);
            last = mean;
            at += counter.bin;
        }
        if (last != 0) out_.counter(of, counter.name, within(at), 0);
    }

    void write_kernels() {
        std::map<std::pair<int, int>, bool> named;
        for (const KernelSpan& span : result_.timeline.spans) {
            const Track track{process(fmt::format("gpu {}", span.gpu)), span.kernel + 1};
            const std::string& name =
                result_.timeline.kernels[static_cast<std::size_t>(span.kernel)];
            if (!named[{track.process, track.thread}]) out_.name_thread(track, name);
            named[{track.process, track.thread}] = true;
            out_.slice(track, name, within(span.begin), within(span.end));
        }
    }

    /// A slice lasts until the next step at the same place; where the row leaves, a nanosecond.
    /// Steps of one nanosecond at one place are one slice.
    std::vector<Slice> slices_of(const RowPath& row, int thread) {
        std::vector<Slice> slices;
        for (const RowStep& step : row.steps) {
            const Track track{process(step.where), thread};
            const Ps at = within(step.at);
            const bool same = !slices.empty() && slices.back().track.process == track.process;
            if (same && at / kNs <= slices.back().begin / kNs) {
                slices.back().name += ", " + step.what;
                continue;
            }
            if (same) slices.back().end = at;
            slices.push_back({track, step.what, at, at + kNs});
        }
        return slices;
    }

    void write_row(const RowPath& row, int thread, std::int64_t flow) {
        const std::vector<Slice> slices = slices_of(row, thread);
        std::map<int, bool> named;
        for (std::size_t i = 0; i < slices.size(); ++i) {
            const Slice& slice = slices[i];
            if (!named[slice.track.process]) out_.name_thread(slice.track, name_of_row(row));
            named[slice.track.process] = true;
            out_.slice(slice.track, slice.name, slice.begin, slice.end);
            if (slices.size() < 2) continue;
            using Flow = TraceWriter::Flow;
            out_.flow(slice.track,
                      i == 0                   ? Flow::start
                      : i + 1 == slices.size() ? Flow::end
                                               : Flow::step,
                      flow, slice.begin);
        }
    }

    TraceWriter& out_;
    const TracedLayer& layer_;
    const LayerResult& result_;
    int next_;
    std::map<std::string, int> processes_;
};

std::string other_data(const Trace& trace, const std::vector<TracedLayer>& layers) {
    Json json;
    json["made_by"] = "moehub";
    json["rows"] = fmt::format("one of {} followed, {} in all", trace.every, trace.rows);
    json["counters"] = fmt::format(
        "means over bins of time, {} recorded bins in one; links of a GPU in a direction together",
        trace.joined);
    json["kernels"] = "of one name on one GPU joined where they overlap or nearly touch";
    for (const TracedLayer& layer : layers)
        json["layer_us"][layer.name] = to_us(layer.result->time);
    return json.dump(-1);
}

}  // namespace

Trace perfetto_trace(const std::vector<TracedLayer>& layers, std::int64_t most_events) {
    Trace trace;
    std::vector<std::vector<TraceCounter>> counters;
    for (const TracedLayer& layer : layers) counters.push_back(counters_of(*layer.result));
    for (;; trace.joined *= 2) {
        std::int64_t events = 0;
        std::size_t longest = 0;
        for (std::size_t i = 0; i < layers.size(); ++i) {
            for (const TraceCounter& counter : counters[i]) {
                const TraceCounter some = joined(counter, trace.joined);
                events += changes(some, layers[i].result->time);
                longest = std::max(longest, some.values.size());
            }
        }
        if (events <= most_events || longest <= 1) break;
    }
    TraceWriter out;
    int process = 1;
    for (std::size_t i = 0; i < layers.size(); ++i) {
        LayerTrace one(out, layers[i], process);
        one.write(counters[i], trace.joined, trace.rows + 1);
        process = one.next_process();
        trace.rows += static_cast<std::int64_t>(layers[i].result->timeline.rows.size());
        trace.every = std::max(trace.every, layers[i].result->timeline.every);
    }
    trace.events = out.events();
    trace.json = std::move(out).finish(other_data(trace, layers));
    return trace;
}

std::string trace_line(const Trace& trace) {
    const std::string rows = trace.rows == 0
                                 ? "no row followed"
                                 : fmt::format("one row of {} followed", grouped(trace.every));
    const std::string bins =
        trace.joined > 1 ? fmt::format(", bins joined by {}", trace.joined) : "";
    return fmt::format("trace: {}, {} events{}, {:.1f} MB\n", rows, grouped(trace.events), bins,
                       static_cast<double>(trace.json.size()) / 1e6);
}

}  // namespace moehub
