/// A bound that asks for no times: how a model is cut into stages depends on them.
#pragma once
#include <moehub/training.hpp>

namespace moehub {

/// Bytes that some stage's GPUs take at least, however the model is cut.
double least_memory(const TrainingRun& run, const ParallelLayout& layout);

}  // namespace moehub
