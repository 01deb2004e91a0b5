/// What whole models consist of beside what is simulated: blocks of operators, timed by the GPU's
/// model; attention that groups of GPUs share; parts that are added up.
#pragma once
#include "sim/gpu/transformer.hpp"

#include <moehub/model.hpp>
#include <moehub/model_time.hpp>
#include <moehub/units.hpp>

#include <string>

namespace moehub {

/// A block of the rest that occurs `count` times, both ways.
struct RestBlock {
    int count = 0;
    BlockTime forward;
    BlockTime backward;
    Ps weight_gradients = 0;  ///< gradients of weights, a part of the backward pass

    LayerTypeTime part(std::string name, Part which) const {
        return {std::move(name), count, forward.of(which), backward.of(which)};
    }
};

struct Rest {
    RestBlock attention;
    RestBlock windowed;
    RestBlock dense;  ///< FFNs; activations of a model that GPUs share
    RestBlock head;
};

Rest rest_of(const Model& model, const Gpu& gpu, const Sequences& sequences,
             const ModelOptions& options);

/// Counts attention between its matrices instead of all of it, on a share of the heads.
void share_attention(Rest& rest, const Model& slice, const Gpu& gpu, const Sequences& sequences,
                     const ModelOptions& options);

/// The rest of a dense model: what one GPU runs between the matrices, and its share of the head.
Rest rest_of_slice(const Model& slice, const Gpu& gpu, const Sequences& sequences,
                   const ModelOptions& options);

/// What the whole rest waits for its eager host.
LayerTypeTime host_of(const Rest& rest);

/// The model with a GPU's share of the heads; of FFN and vocabulary the largest share. Key-value
/// heads fewer than GPUs are kept by several. Throws InputError when heads cannot be shared so.
Model slice_of(const Model& model, int gpus);

/// Two halves of an attention as one group runs them; the other groups do the same on links of
/// their own.
struct SharedAttention {
    Model slice;                         ///< share of one GPU
    Sequences sequences;                 ///< sequences of a group
    std::vector<SubLayerResult> halves;  ///< in, out
};

/// Attention that GPUs share. Throws InputError when they cannot share it so, or in training.
SharedAttention shared_attention(const LayerInput& input, const ModelOptions& options);

/// Adds attention's parts, windowed layers by themselves.
void add_attention(std::vector<LayerTypeTime>& parts, const Model& model, const Rest& rest);

void add(Breakdown& sum, const Breakdown& one);

/// Fills in what follows from a model's parts and operations.
void sum_up(ModelTime& time, const Machine& machine, std::int64_t tokens);

}  // namespace moehub
