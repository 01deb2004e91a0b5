#include "cli/trace.hpp"

#include "cli/output.hpp"
#include "cli/values.hpp"

#include <cstdio>

namespace moehub {
namespace {

constexpr std::int64_t kMostRows = 4096;

}  // namespace

void add_trace_options(std::vector<Option>& options, TraceArguments& arguments) {
    options.push_back({"--trace", &arguments.file,
                       "also write a timeline that the Perfetto UI opens: kernels, SMs, links, "
                       "units, and some rows on their way",
                       "FILE"});
    options.push_back({"--trace-rows",
                       &arguments.rows,
                       "rows to follow in each layer, at most; without it 64",
                       "N",
                       {.needs = "--trace"}});
}

TimelineOptions timeline_of(const TraceArguments& arguments) {
    TimelineOptions options;
    options.record = !arguments.file.empty();
    require_writable(arguments.file);
    if (arguments.rows)
        options.followed_rows =
            static_cast<int>(count_of("--trace-rows", *arguments.rows, {0, kMostRows}));
    return options;
}

std::vector<TracedLayer> traced(const Comparison& comparison) {
    std::vector<TracedLayer> layers;
    for (const ComparisonRow& row : comparison.rows)
        layers.push_back({row.result.system, &row.result});
    return layers;
}

std::vector<TracedLayer> traced(const TpCase& layer, const std::vector<Comparison>& parts) {
    std::vector<TracedLayer> layers;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        for (TracedLayer& one : traced(parts[i])) {
            one.name = fmt::format("{} {}", name_of(layer.parts[i]), one.name);
            layers.push_back(std::move(one));
        }
    }
    return layers;
}

void put_trace(const TraceArguments& arguments, const std::vector<TracedLayer>& layers) {
    if (arguments.file.empty()) return;
    const Trace trace = perfetto_trace(layers);
    put(trace.json, arguments.file);
    std::fputs(trace_line(trace).c_str(), stderr);
}

}  // namespace moehub
