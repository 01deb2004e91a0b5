/// Attention that groups of GPUs share beside experts.
#pragma once
#include "study/model_rest.hpp"

namespace moehub {

/// Its two halves as one group runs them; the other groups do the same on links of their own.
struct SharedAttention {
    Model slice;                         ///< of one GPU
    Sequences sequences;                 ///< of a group
    std::vector<SubLayerResult> halves;  ///< in, out
};

/// Throws InputError when GPUs cannot share it so, or in training.
SharedAttention shared_attention(const LayerInput& input, const ModelOptions& options);

}  // namespace moehub
