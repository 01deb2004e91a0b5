/// What a report of a whole model says of it first.
#pragma once
#include "report/model_report.hpp"
#include "sim/gpu/transformer.hpp"

namespace moehub {

/// As attention sees them.
Sequences sequences_of(const ModelCase& model);
Sequences sequences_of(const DenseCase& model);

}  // namespace moehub
