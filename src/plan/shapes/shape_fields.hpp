/// The parts of a shape, as data: what a constraint calls each, and where it lies in a Model.
#pragma once
#include <moehub/shape_search.hpp>

#include <span>
#include <string_view>

namespace moehub {

struct ShapeField {
    std::string_view key;
    std::vector<int> ShapeAxes::*axis;
    int (*get)(const Model&);
    void (*set)(Model&, int, const Model& base);  ///< with what follows it
    int least;
    int most;
};

/// In the order in which axes are walked, the last one fastest: shapes that differ in depth alone
/// come together, as their layers cost the same.
std::span<const ShapeField> shape_fields();

}  // namespace moehub
