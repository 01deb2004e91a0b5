/// What `moehub model` is asked.
#pragma once
#include "report/model_report.hpp"
#include "request/layer_arguments.hpp"
#include "request/serving_arguments.hpp"

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

/// The model's MoE layer and what surrounds it; not yet timed. Throws InputError.
ModelCase load_moe_model(const ModelArguments& arguments, const LayerNouns& given = {});
/// The systems of MoE layers; attention's goes into the model's options, with what `--set` changes.
std::vector<SystemSpec> load_systems(const ModelArguments& arguments, ModelCase& model,
                                     const LayerNouns& given = {});

/// Of a model without experts. Throws InputError.
DenseCase load_dense_model(const ModelArguments& arguments, const LayerNouns& given = {});
std::vector<SystemSpec> load_dense_systems(const ModelArguments& arguments,
                                           const LayerNouns& given = {});

}  // namespace moehub
