/// What `moehub model --decode` and `--prefill` are asked.
#pragma once
#include "request/layer_arguments.hpp"
#include "request/option.hpp"

#include <moehub/served_model.hpp>

#include <optional>
#include <string>
#include <vector>

namespace moehub {

/// As typed.
struct ServingArguments {
    bool decode = false;
    bool prefill = false;
    std::optional<std::string> context;
    std::optional<std::string> prompt;
    std::optional<std::string> batch_per_gpu;
    std::optional<std::string> engine;
    std::optional<std::string> weights;
    std::optional<std::string> cache;
    std::optional<std::string> overlap;
    std::optional<std::string> tokens_per_step;
    std::optional<std::string> find;
    std::optional<std::string> tpot;

    bool asked() const { return decode || prefill; }
};
void add_serving_options(std::vector<Option>& options, ServingArguments& arguments);
/// Throws InputError when an option of serving is there without --decode or --prefill.
void require_no_serving(const ServingArguments& arguments);

struct ModelArguments;

inline constexpr const char* kUsualServingMachine = "dgx-h200";
/// One for each number of GPUs. Throws InputError.
std::vector<Serving> load_servings(const ModelArguments& arguments);
/// Throws InputError for options of training, and of layers that a served model does not have.
void refuse_unserved(const ModelArguments& arguments);
/// The format of weights, as typed or as usual on the card.
std::string weights_of(const ModelArguments& arguments, const Machine& machine);

}  // namespace moehub
