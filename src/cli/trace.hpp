/// `--trace`: a timeline of what is simulated, as a file for the Perfetto UI.
#pragma once
#include "cli/command.hpp"
#include "report/perfetto.hpp"
#include "study/tp_case.hpp"

#include <moehub/compare.hpp>
#include <moehub/timeline.hpp>

#include <optional>
#include <string>
#include <vector>

namespace moehub {

/// As typed.
struct TraceArguments {
    std::string file;
    std::optional<std::string> rows;
};

void add_trace_options(std::vector<Option>& options, TraceArguments& arguments);

/// What is to be recorded; throws InputError, for a file that could not be written, too.
TimelineOptions timeline_of(const TraceArguments& arguments);

/// The layers of a comparison; they refer to it. Of sub-layers their names come first.
std::vector<TracedLayer> traced(const Comparison& comparison);
std::vector<TracedLayer> traced(const TpCase& layer, const std::vector<Comparison>& parts);

/// Writes the file where one is asked for, and says on standard error what it holds.
void put_trace(const TraceArguments& arguments, const std::vector<TracedLayer>& layers);

}  // namespace moehub
