/// What `moehub model` is asked.
#pragma once
#include "cli/layer_arguments.hpp"
#include "cli/model_serving.hpp"

#include <moehub/model_time.hpp>

namespace moehub {

struct ModelArguments {
    LayerArguments layer;
    ServingArguments serving;
    std::optional<std::string> systems;
    std::optional<std::string> sequence;
    std::optional<std::string> threads;
    std::optional<std::string> attention_gpus;
    std::optional<std::string> attention_system;
    bool training = false;
    bool graphs = false;
    bool overlap_gradients = false;
};

/// Those of a whole model beyond its layers', but for attention that is shared.
void add_model_options(std::vector<Option>& options, ModelArguments& arguments);

/// Those that models of all kinds have. Throws InputError.
ModelOptions options_of(const ModelArguments& arguments);

/// A model without experts.
void dense_model_command(const ModelArguments& arguments);

}  // namespace moehub
