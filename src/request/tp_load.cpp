// From what was typed to tensor-parallel sub-layers.
#include "request/layer_arguments.hpp"
#include "request/values.hpp"
#include "study/collective_names.hpp"

#include <algorithm>
#include <utility>

namespace moehub {
namespace {

constexpr const char* kUsualMachine = "dgx-h100";
constexpr const char* kUsualModel = "llama-7b";
constexpr const char* kUsualSubLayer = "L1";
constexpr const char* kAll = "all";
constexpr std::int64_t kUsualTokens = 8192;  ///< of a model that does not say

/// Options that only MoE layers have: one that was typed, or nothing.
std::string_view moe_option(const LayerArguments& a) {
    const std::pair<std::string_view, bool> typed[] = {
        {"--routing", a.routing.has_value()},
        {"--seed", a.seed.has_value()},
        {"--layer", a.layer.has_value()},
        {"--pass", a.pass.has_value()},
        {"--tp", a.tensor_parallel.has_value()},
        {"--layout", a.layout.has_value()},
        {"--replicas", a.replicas.has_value()},
        {"--replica-policy", a.replica_policy.has_value()},
        {"--region-rows", a.region_rows.has_value()},
        {"--page-rows", a.page_rows.has_value()},
        {"--page-pool", a.page_pool.has_value()},
        {"--host", a.host.has_value()},
        {"--fused-activation", a.fused_activation},
        {"--fp8", a.fp8},
    };
    for (const auto& [name, is_typed] : typed)
        if (is_typed) return name;
    return {};
}

void refuse_moe_options(const LayerArguments& arguments, const std::string& found) {
    if (const std::string_view option = moe_option(arguments); !option.empty())
        throw InputError(fmt::format("{}: found with {}, allowed: with MoE layers", option, found));
}

std::vector<SubLayer> parts_of(const LayerArguments& arguments, bool several) {
    const std::string name = arguments.sub_layer.value_or(kUsualSubLayer);
    if (several && name == kAll) return {SubLayer::l1, SubLayer::l2, SubLayer::l3, SubLayer::l4};
    const std::vector<std::string> known = sub_layer_names();
    std::vector<std::string_view> names(known.begin(), known.end());
    if (several) names.emplace_back(kAll);
    return {named("--sublayer", name, sub_layer_named(name), names)};
}

std::int64_t tokens_of(const LayerArguments& arguments, const Model& model, int gpus) {
    if (const auto asked = asked_tokens(arguments, gpus)) return *asked;
    if (model.sequence < 1) return kUsualTokens;
    return std::min<std::int64_t>(kMostTokens, std::int64_t{model.sequence} * model.batch);
}

TpCase load(const LayerArguments& arguments, const LayerNouns& given) {
    TpCase made;
    made.machine_name = machine_name(arguments, given, kUsualMachine);
    made.model_name = model_name(arguments, given, kUsualModel);
    made.settings = settings_of(arguments, given);
    made.machine = machine_of(arguments, made.machine_name, given);
    made.model = model_of(arguments, made.model_name, given);
    made.tokens = tokens_of(arguments, made.model, made.machine.gpus());
    made.options.grain =
        named("--grain", arguments.grain, grain_named(arguments.grain), grain_names());
    made.options.verify = arguments.verify;
    made.options.timeline = timeline_of(arguments.trace);
    made.options.timeline.record |= arguments.html.asked();
    return made;
}

}  // namespace

bool wants_tp(const LayerArguments& arguments) {
    const std::string type = arguments.layer_type.value_or("moe");
    std::optional<bool> tp;
    if (type == "moe") tp = false;
    if (type == "tp") tp = true;
    const bool wanted = named("--layer-type", type, tp, {"moe", "tp"});
    if (wanted) refuse_moe_options(arguments, "--layer-type tp");
    if (!wanted && arguments.sub_layer)
        throw InputError("--sublayer: found with a MoE layer, allowed: with --layer-type tp");
    return wanted;
}

TpCase load_tp(const LayerArguments& arguments, bool several, const LayerNouns& given) {
    const std::vector<SubLayer> parts = parts_of(arguments, several);
    TpCase made = load(arguments, given);
    made.parts = parts;
    return made;
}

TpCase load_dense(const LayerArguments& arguments, const LayerNouns& given) {
    const std::string name = model_name(arguments, given, kUsualModel);
    refuse_moe_options(arguments, fmt::format("model {}, which is dense", moehub::quoted(name)));
    TpCase made = load(arguments, given);
    made.parts = {SubLayer::l1, SubLayer::l2};
    return made;
}

}  // namespace moehub
