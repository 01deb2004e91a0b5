/// A transformer layer with experts, forward beside another's backward (overlapped_passes.hpp): how
/// long its steps take, and what comes out.
#pragma once
#include "study/model_rest.hpp"
#include "study/overlapped_passes.hpp"

#include <moehub/model_time.hpp>

namespace moehub {

/// The same system, one pass after the other: a layer of it can be simulated.
SystemSpec without_overlap(SystemSpec system);

/// What attention outside MoE layers there is: that of dense layers.
Rest apart_from_moe(const Model& model, Rest rest);

/// Rows are simulated alone, on the SMs that communication holds; the dispatch counts from the
/// start on, with counts of rows and what the host must know of them. Experts and attention are
/// timed on all SMs and on those that are left. Throws as simulate_layer() does.
OverlappedTime overlapped_time(const LayerInput& input, const SystemSpec& system,
                               const Sequences& sequences, const ModelOptions& options);

}  // namespace moehub
