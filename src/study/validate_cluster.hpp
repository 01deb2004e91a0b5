/// Published collectives between nodes and in racks, named as their sources name them.
#pragma once
#include "study/validate_rows.hpp"

namespace moehub {

std::vector<CollectiveCase> parse_cluster_collective(const CsvRow& row);
Prediction predict_cluster_collective(const CollectiveCase& what, const PredictContext& context);

}  // namespace moehub
