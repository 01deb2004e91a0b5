/// Shapes in the order of how fast they train, whatever says how fast that is.
#pragma once
#include <moehub/shape_search.hpp>

#include <functional>
#include <optional>
#include <vector>

namespace moehub {

/// The fastest step of a model, or nothing where it cannot run or does not fit. Called by several
/// threads at a time.
using ShapeTimer = std::function<std::optional<TrainingStep>(const Model&)>;

/// Times every shape. Fills best, by_axis, timed and base_rank (the rank of `base`'s shape).
void rank_shapes(const std::vector<Model>& shapes, const Model& base, const ShapeTimer& timer,
                 const ShapeSearchOptions& options, ShapeSearch& found);

}  // namespace moehub
