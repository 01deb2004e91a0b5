/// `--trace`: a timeline of what is simulated, as a file for the Perfetto UI.
#pragma once
#include "request/option.hpp"

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

/// What is to be recorded. Throws InputError.
TimelineOptions timeline_of(const TraceArguments& arguments);

}  // namespace moehub
