/// Everything of a model but what is simulated: blocks of operators, timed by the GPU's model.
#pragma once
#include "sim/gpu/transformer.hpp"

#include <moehub/model_time.hpp>

#include <string>

namespace moehub {

/// A block of the rest that occurs `count` times, both ways.
struct RestBlock {
    int count = 0;
    BlockTime forward;
    BlockTime backward;
    Ps weight_gradients = 0;  ///< of the backward pass

    LayerTypeTime part(std::string name, Part which) const {
        return {std::move(name), count, forward.of(which), backward.of(which)};
    }
};

struct Rest {
    RestBlock attention;
    RestBlock windowed;
    RestBlock dense;  ///< FFNs; of a model that GPUs share, their activations
    RestBlock head;
};

Rest rest_of(const Model& model, const Gpu& gpu, const Sequences& sequences,
             const ModelOptions& options);

/// Attention between its matrices instead of all of it, on a share of the heads.
void share_attention(Rest& rest, const Model& slice, const Gpu& gpu, const Sequences& sequences,
                     const ModelOptions& options);

/// Of a dense model: what one GPU runs between the matrices, and its share of the head.
Rest rest_of_slice(const Model& slice, const Gpu& gpu, const Sequences& sequences,
                   const ModelOptions& options);

/// What all of it waits for its eager host.
LayerTypeTime host_of(const Rest& rest);

}  // namespace moehub
