/// Cells of dense models under tensor parallelism, and of collectives.
#pragma once
#include "study/reproduce_cells.hpp"

#include <moehub/model_time.hpp>

namespace moehub {

/// The sub-layer that the cell names, or the whole model. Throws as simulate_tp and
/// simulate_dense_models do.
void run_dense(const DenseInput& input, const SystemSpec& system, const PaperSetup& setup,
               ReproducedCell& cell);

void run_all_reduce(const Machine& machine, ReproducedCell& cell);

}  // namespace moehub
