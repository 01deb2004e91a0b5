#include "report/perfetto_writer.hpp"

#include "base/json.hpp"

#include <iterator>

#include <fmt/format.h>

namespace moehub {
namespace {

std::string quoted_json(std::string_view text) {
    return Json(text).dump(-1);
}

/// Microseconds, to the nanosecond.
std::string time_text(Ps time) {
    return fmt::format("{}.{:03}", time / kUs, time % kUs / kNs);
}

}  // namespace

void TraceWriter::begin(std::string_view kind, Track track, std::string_view name, Ps at) {
    if (events_++ > 0) text_ += ",\n";
    fmt::format_to(std::back_inserter(text_), R"({{"ph":"{}","pid":{},"tid":{},"ts":{},"name":{})",
                   kind, track.process, track.thread, time_text(at), quoted_json(name));
}

void TraceWriter::name_process(int process, std::string_view name) {
    begin("M", {process, 0}, "process_name", 0);
    text_ += fmt::format(R"(,"args":{{"name":{}}}}})", quoted_json(name));
    begin("M", {process, 0}, "process_sort_index", 0);
    text_ += fmt::format(R"(,"args":{{"sort_index":{}}}}})", process);
}

void TraceWriter::name_thread(Track track, std::string_view name) {
    begin("M", track, "thread_name", 0);
    text_ += fmt::format(R"(,"args":{{"name":{}}}}})", quoted_json(name));
    begin("M", track, "thread_sort_index", 0);
    text_ += fmt::format(R"(,"args":{{"sort_index":{}}}}})", track.thread);
}

/// Both ends are rounded alike, so that what lies in another slice still does.
void TraceWriter::slice(Track track, std::string_view name, Ps first, Ps last) {
    begin("X", track, name, first);
    const Ps length = (last / kNs - first / kNs) * kNs;
    text_ += fmt::format(R"(,"dur":{}}})", time_text(length));
}

void TraceWriter::counter(int process, std::string_view name, Ps at, double value) {
    begin("C", {process, 0}, name, at);
    fmt::format_to(std::back_inserter(text_), R"(,"args":{{"value":{:.4g}}}}})", value);
}

void TraceWriter::flow(Track track, Flow what, std::int64_t id, Ps at) {
    constexpr std::string_view kKinds[] = {"s", "t", "f"};
    begin(kKinds[static_cast<std::size_t>(what)], track, "row", at);
    text_ +=
        fmt::format(R"(,"cat":"row","id":{}{}}})", id, what == Flow::end ? R"(,"bp":"e")" : "");
}

std::string TraceWriter::finish(std::string_view other) && {
    text_ += fmt::format("\n],\n\"displayTimeUnit\":\"ns\",\n\"otherData\":{}}}\n", other);
    return std::move(text_);
}

}  // namespace moehub
