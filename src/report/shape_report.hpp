/// A shape search for people and for programs.
#pragma once
#include "base/json.hpp"
#include "report/text_style.hpp"

#include <moehub/shape_search.hpp>

#include <string>

namespace moehub {

/// What was searched, a table of the fastest shapes, where the base model stands, and for each axis
/// how fast its values are at best.
std::string shape_text(const ShapeSearch& found, const ShapeSearchOptions& options,
                       const TrainingRun& run, const TextStyle& style);

/// Where the base model stands among those found.
std::string base_sentence(const ShapeSearch& found, const TrainingRun& run);

/// {"points", "within", "timed", "layouts", "best": [{shape, parameters, …}], "base", "by_axis"}
Json shape_json(const ShapeSearch& found, const ShapeSearchOptions& options,
                const TrainingRun& run);

}  // namespace moehub
