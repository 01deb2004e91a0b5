/// Timelines that `--trace` asks for, written.
#pragma once
#include "report/perfetto.hpp"
#include "request/trace_output.hpp"
#include "study/tp_case.hpp"

#include <moehub/compare.hpp>

#include <vector>

namespace moehub {

/// The layers of a comparison; they refer to it. Of sub-layers their names come first.
std::vector<TracedLayer> traced(const Comparison& comparison);
std::vector<TracedLayer> traced(const TpCase& layer, const std::vector<Comparison>& parts);

/// Writes the file where one is asked for, and says on standard error what it holds.
void put_trace(const TraceArguments& arguments, const std::vector<TracedLayer>& layers);

}  // namespace moehub
