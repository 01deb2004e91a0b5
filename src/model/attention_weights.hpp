/// Weights of an attention block's matrices on one GPU of a tensor-parallel group.
#pragma once
#include <moehub/model.hpp>

namespace moehub {

/// A GPU has a head at least, of queries and of keys.
double attention_weights(const Model& model, int tp);

}  // namespace moehub
