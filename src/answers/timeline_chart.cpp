// A layer over time, from what the simulator recorded: bins that are joined and spans that are left
// out where there would be too many, which the page says.
#include "answers/layer_answer.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr std::size_t kMostValues = 400'000;  ///< values of all systems and GPUs: about 2 MB
constexpr std::size_t kMostSpans = 200'000;

/// The value to the nearest of so many steps between whole numbers.
double rounded(double value, double steps) {
    return std::round(value * steps) / steps;
}

/// The GPU's number, 3 of "gpu 3"; −1 for anything else.
int gpu_of(std::string_view where) {
    constexpr std::string_view kGpu = "gpu ";
    if (!where.starts_with(kGpu)) return -1;
    int number = 0;
    for (const char digit : where.substr(kGpu.size())) {
        if (digit < '0' || digit > '9') return -1;
        number = 10 * number + (digit - '0');
    }
    return number;
}

/// Mean of the bins that are joined, nothing being behind the last; `bin` grows with them.
void join(TimelineSeries& series, std::size_t joined) {
    if (joined < 2) return;
    std::vector<double> means;
    for (std::size_t from = 0; from < series.values.size(); from += joined) {
        const std::size_t to = std::min(series.values.size(), from + joined);
        double sum = 0;
        for (std::size_t i = from; i < to; ++i) sum += series.values[i];
        means.push_back(sum / static_cast<double>(joined));
    }
    series.values = std::move(means);
    series.bin *= static_cast<double>(joined);
}

/// Widths differ by whole factors: each series begins fine and is joined as it grows.
void widen(TimelineSeries& series, double bin) {
    if (series.bin < bin) join(series, static_cast<std::size_t>(std::llround(bin / series.bin)));
}

/// Bins of all alike, so that they can be stacked.
void align(std::vector<TimelineSeries>& list) {
    double widest = 0;
    std::size_t most = 0;
    for (const TimelineSeries& one : list) widest = std::max(widest, one.bin);
    for (TimelineSeries& one : list) {
        widen(one, widest);
        most = std::max(most, one.values.size());
    }
    for (TimelineSeries& one : list) one.values.resize(most);
}

/// Adds to the series of that name, which begins as zeros.
void accumulate(std::vector<TimelineSeries>& list, TimelineSeries more) {
    auto found = std::find_if(list.begin(), list.end(),
                              [&](const TimelineSeries& one) { return one.name == more.name; });
    if (found == list.end()) {
        list.push_back(std::move(more));
        return;
    }
    widen(*found, more.bin);
    widen(more, found->bin);
    if (found->values.size() < more.values.size()) found->values.resize(more.values.size());
    for (std::size_t i = 0; i < more.values.size(); ++i) found->values[i] += more.values[i];
}

/// Links of one way and kind together: the mean share of time in which they are busy.
void add_links(const LayerResult& result, std::vector<TimelineGpu>& gpus) {
    std::map<std::pair<int, std::string>, int> count;
    for (const LinkUse& link : result.links)
        for (const bool out : {true, false}) {
            const int gpu = gpu_of(out ? link.from : link.to);
            const std::string& other = out ? link.to : link.from;
            if (gpu < 0 || gpu >= static_cast<int>(gpus.size()) || link.bin == 0) continue;
            const std::string name =
                fmt::format("{} {}", out ? "to" : "from",
                            other.starts_with("switch") ? "switches"
                            : other.starts_with("gpu")  ? "GPUs"
                                                        : other.substr(0, other.find(' ')));
            std::vector<double> shares;
            for (const Ps busy : link.bins)
                shares.push_back(100 * static_cast<double>(busy) / static_cast<double>(link.bin));
            accumulate(gpus[static_cast<std::size_t>(gpu)].links,
                       {name, to_us(link.bin), std::move(shares)});
            ++count[{gpu, name}];
        }
    for (std::size_t gpu = 0; gpu < gpus.size(); ++gpu)
        for (TimelineSeries& one : gpus[gpu].links)
            for (double& value : one.values) value /= count[{static_cast<int>(gpu), one.name}];
}

void add_span(std::vector<TimelineGpu>& gpus, int gpu, const std::string& lane, Ps begin, Ps end) {
    if (gpu < 0 || gpu >= static_cast<int>(gpus.size())) return;
    auto& spans = series_named(gpus[static_cast<std::size_t>(gpu)].lanes, lane).spans;
    spans.push_back(rounded(to_us(begin), 100));
    spans.push_back(rounded(to_us(end), 100));
}

void add_lanes(const LayerResult& result, std::vector<TimelineGpu>& gpus) {
    for (const BusyInterval& one : result.intervals)
        add_span(gpus, one.gpu,
                 one.what == BusyInterval::What::compute ? "kernels run" : "communication",
                 one.begin, one.end);
    for (const KernelSpan& one : result.timeline.spans)
        add_span(gpus, one.gpu, result.timeline.kernels[static_cast<std::size_t>(one.kernel)],
                 one.begin, one.end);
}

/// Packets of a bin as packets/µs.
std::vector<double> rates(const TimeSeries& series) {
    std::vector<double> rates;
    for (const double packets : series.values) rates.push_back(packets / to_us(series.bin));
    return rates;
}

TimelineSystem system_of(const LayerResult& result) {
    TimelineSystem system{result.system, to_us(result.time), {}, {}};
    int gpus = 0;
    for (const LinkUse& link : result.links)
        gpus = std::max({gpus, gpu_of(link.from) + 1, gpu_of(link.to) + 1});
    for (const BusyInterval& one : result.intervals) gpus = std::max(gpus, one.gpu + 1);
    for (int gpu = 0; gpu < gpus; ++gpu)
        system.gpus.push_back({fmt::format("GPU {}", gpu), {}, {}, {}, {}});
    add_lanes(result, system.gpus);
    add_links(result, system.gpus);
    for (const TimeSeries& one : result.timeline.sms)
        if (const int gpu = gpu_of(one.where); gpu >= 0 && gpu < gpus)
            accumulate(system.gpus[static_cast<std::size_t>(gpu)].sms,
                       {one.name, to_us(one.bin), one.values});
    for (const TimeSeries& one : result.timeline.units) {
        const int gpu = gpu_of(one.where);
        accumulate(gpu >= 0 && gpu < gpus ? system.gpus[static_cast<std::size_t>(gpu)].units
                                          : system.switches,
                   {one.name, to_us(one.bin), rates(one)});
    }
    for (TimelineGpu& gpu : system.gpus) align(gpu.sms);
    return system;
}

template <class Visit>
void for_each_series(TimelineChart& chart, Visit visit) {
    for (TimelineSystem& system : chart.systems) {
        for (TimelineSeries& one : system.switches) visit(one);
        for (TimelineGpu& gpu : system.gpus)
            for (auto* list : {&gpu.sms, &gpu.links, &gpu.units})
                for (TimelineSeries& one : *list) visit(one);
    }
}

std::size_t span_count(const TimelineChart& chart) {
    std::size_t count = 0;
    for (const TimelineSystem& system : chart.systems)
        for (const TimelineGpu& gpu : system.gpus)
            for (const TimelineLane& lane : gpu.lanes) count += lane.spans.size() / 2;
    return count;
}

/// What was joined, in words.
std::vector<std::string> bounded(TimelineChart& chart) {
    std::vector<std::string> notes;
    std::size_t values = 0;
    for_each_series(chart, [&](const TimelineSeries& one) { values += one.values.size(); });
    const std::size_t joined = (values + kMostValues - 1) / kMostValues;
    for_each_series(chart, [&](TimelineSeries& one) {
        join(one, joined);
        for (double& value : one.values) value = rounded(value, 10);
    });
    if (joined > 1)
        notes.push_back(
            fmt::format("To keep the page small, {} bins of time are joined to one each.", joined));
    if (span_count(chart) <= kMostSpans) return notes;
    for (TimelineSystem& system : chart.systems)
        for (TimelineGpu& gpu : system.gpus) gpu.lanes.clear();
    notes.emplace_back("To keep the page small, single kernels and transfers are left out.");
    return notes;
}

}  // namespace

TimelineChart timeline_chart(const Comparison& comparison, std::vector<std::string>& notes) {
    TimelineChart chart{"Each GPU over time", {}};
    for (const ComparisonRow& row : comparison.rows)
        if (!row.result.links.empty()) chart.systems.push_back(system_of(row.result));
    if (chart.systems.empty()) return chart;
    notes = bounded(chart);
    notes.emplace_back(
        "Drag or turn the wheel to zoom and move, or use the slider and the buttons. Values are "
        "means over bins of time.");
    return chart;
}

}  // namespace moehub
