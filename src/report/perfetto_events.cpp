#include "report/perfetto_events.hpp"

#include "base/json.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

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

bool is_gpu(const std::string& name) {
    return name.starts_with("gpu ");
}

/// Links of one component that go the same way, taken together.
struct LinkGroup {
    std::vector<const LinkUse*> links;
};
using Groups = std::map<std::pair<std::string, std::string>, LinkGroup>;

/// Of a GPU both directions; of what lies between switches the sender's.
Groups groups_of(const std::vector<LinkUse>& links) {
    Groups groups;
    for (const LinkUse& link : links) {
        const bool network = link.from.starts_with("leaf") || link.to.starts_with("leaf");
        if (is_gpu(link.from)) {
            groups[{link.from, network ? "NIC out, % busy" : "links out, % busy"}].links.push_back(
                &link);
        }
        if (is_gpu(link.to)) {
            groups[{link.to, network ? "NIC in, % busy" : "links in, % busy"}].links.push_back(
                &link);
        }
        if (!is_gpu(link.from) && !is_gpu(link.to))
            groups[{link.from, "links out, % busy"}].links.push_back(&link);
    }
    return groups;
}

/// Bins of different links differ in width by powers of two: the widest is everybody's.
TraceCounter mean_of(const LinkGroup& group, std::string where, std::string name) {
    TraceCounter made{std::move(where), std::move(name), 0, {}};
    for (const LinkUse* link : group.links) made.bin = std::max(made.bin, link->bin);
    for (const LinkUse* link : group.links) {
        const auto fold = static_cast<std::size_t>(made.bin / link->bin);
        for (std::size_t i = 0; i < link->bins.size(); ++i) {
            if (i / fold >= made.values.size()) made.values.resize(i / fold + 1);
            made.values[i / fold] += static_cast<double>(link->bins[i]);
        }
    }
    const double whole = static_cast<double>(made.bin) * static_cast<double>(group.links.size());
    for (double& value : made.values) value = std::min(100.0, 100 * value / whole);
    return made;
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
    for (const auto& [key, group] : groups_of(result.links))
        list.push_back(mean_of(group, key.first, key.second));
    return list;
}

TraceCounter joined(const TraceCounter& counter, int bins) {
    const auto fold = static_cast<std::size_t>(bins);
    TraceCounter made{counter.where, counter.name, counter.bin * bins, {}};
    made.values.resize((counter.values.size() + fold - 1) / fold);
    for (std::size_t i = 0; i < counter.values.size(); ++i)
        made.values[i / fold] += counter.values[i] / bins;
    return made;
}

std::int64_t changes(const TraceCounter& counter, Ps end) {
    std::int64_t count = 1;  // back to zero
    for (std::size_t i = 0; i < counter.values.size(); ++i) {
        if (static_cast<Ps>(i) * counter.bin >= end) break;
        count += i == 0 || counter.values[i] != counter.values[i - 1];
    }
    return count;
}

}  // namespace moehub
