/// What a report of a whole model says of it first.
#pragma once
#include "report/model_report.hpp"
#include "sim/gpu/transformer.hpp"

#include <moehub/compare.hpp>

namespace moehub {

/// As attention sees them.
Sequences sequences_of(const ModelCase& model);
Sequences sequences_of(const DenseCase& model);

/// One pass of the MoE layer as a comparison of its own, with the model's baseline.
Comparison layer_comparison(const ModelCase& model, Pass pass);
/// A sub-layer of a dense model, likewise; counted from 0 as in ModelTime::sub_layers.
Comparison sub_layer_comparison(const DenseCase& model, std::size_t part);

}  // namespace moehub
