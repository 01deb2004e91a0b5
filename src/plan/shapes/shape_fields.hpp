/// The parts of a shape, as data: what a constraint calls each, and where it lies in a Model.
#pragma once
#include <moehub/shape_search.hpp>

#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace moehub {

struct ShapeField {
    std::string_view key;
    std::vector<int> ShapeAxes::*axis;
    int (*get)(const Model&);
    void (*set)(Model&, int, const Model& base);  ///< sets the part and what follows it
    int least;
    int most;
};

/// All parts in the order in which axes are walked, the last fastest: shapes that differ in depth
/// alone come together, as their layers cost the same.
std::span<const ShapeField> shape_fields();

// Shapes in the order of how fast they train, whatever says how fast that is.

/// The fastest step of a model, or nothing where it cannot run or does not fit. Called by several
/// threads at a time.
using ShapeTimer = std::function<std::optional<TrainingStep>(const Model&)>;

/// Times every shape. Fills best, by_axis, timed and base_rank (the rank of `base`'s shape).
void rank_shapes(const std::vector<Model>& shapes, const Model& base, const ShapeTimer& timer,
                 const ShapeSearchOptions& options, ShapeSearch& found);

}  // namespace moehub
