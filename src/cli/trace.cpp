#include "cli/trace.hpp"

#include "cli/output.hpp"

#include <cstdio>

#include <fmt/format.h>

namespace moehub {
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
