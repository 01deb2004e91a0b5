/// Everything of a model but its MoE layers: blocks of operators, timed by the GPU's model.
#pragma once
#include "sim/gpu/transformer_time.hpp"

#include <moehub/model_time.hpp>

#include <string>

namespace moehub {

/// A block that occurs `count` times, both ways.
struct Block {
    int count = 0;
    BlockTime forward;
    BlockTime backward;
    Ps weight_gradients = 0;  ///< of the backward pass

    LayerTypeTime part(std::string name, Part which) const {
        return {std::move(name), count, forward.of(which), backward.of(which)};
    }
};

struct Rest {
    Block attention;
    Block windowed;
    Block dense;
    Block head;
};

Rest rest_of(const Model& model, const Gpu& gpu, const Sequences& sequences,
             const ModelOptions& options);

/// What all of it waits for its eager host.
LayerTypeTime host_of(const Rest& rest);

}  // namespace moehub
