/// What one of several GPUs has of a model that they share by tensor parallelism.
#pragma once
#include <moehub/model.hpp>
#include <moehub/units.hpp>

namespace moehub {

/// Its heads; of FFN and vocabulary the largest share. Key-value heads fewer than GPUs are kept by
/// several. Throws InputError when heads cannot be shared so.
Model slice_of(const Model& model, int gpus);

}  // namespace moehub
