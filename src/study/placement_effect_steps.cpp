#include "study/placement_effect_steps.hpp"

#include "base/quantity.hpp"
#include "base/utf8.hpp"

#include <moehub/error.hpp>
#include <moehub/layer.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace moehub {
namespace {

bool is_complete(const Profile& profile, std::int64_t token) {
    for (int layer = 0; layer < profile.layers; ++layer)
        for (const std::uint16_t expert : profile.chosen_by(layer, token))
            if (expert == Profile::kNobody) return false;
    return true;
}

}  // namespace

ProfileSteps::ProfileSteps(const Profile& profile, std::int64_t step_tokens, int most_steps)
    : profile_(profile) {
    for (std::int64_t token = 0; token < profile.tokens; ++token)
        if (is_complete(profile, token)) complete_.push_back(token);
    const auto count = static_cast<std::int64_t>(complete_.size());
    if (count == 0)
        throw InputError(
            fmt::format("{}: tokens: found none with {} experts in every layer, "
                        "allowed: at least one for each GPU",
                        printable(profile.name), profile.top_k));
    incomplete_ = profile.tokens - count;
    tokens_ = std::min(count, step_tokens);
    steps_ = static_cast<int>(std::min<std::int64_t>(most_steps, count / tokens_));
}

Routing ProfileSteps::routing(int layer, int step) const {
    Routing one{profile_.experts, profile_.top_k, 1, tokens_, {}, {}};
    const auto rows = static_cast<std::size_t>(tokens_ * profile_.top_k);
    std::vector<std::uint16_t> all;
    all.reserve(rows);
    for (std::int64_t i = step * tokens_; i < (step + 1) * tokens_; ++i) {
        const auto chosen = profile_.chosen_by(layer, complete_[static_cast<std::size_t>(i)]);
        all.insert(all.end(), chosen.begin(), chosen.end());
    }
    one.chosen = std::move(all);
    one.weights = std::vector<float>(rows, 1.0f / static_cast<float>(profile_.top_k));
    return one;
}

namespace {

void check_options(const EffectInput& input, const EffectOptions& options) {
    if (input.layouts.empty()) throw InputError("effect: found no layout, allowed: 1 or more");
    if (input.systems.empty()) throw InputError("effect: found no system, allowed: 1 or more");
    if (options.step_tokens < 1)
        throw InputError(fmt::format("effect: tokens of a step: found {}, allowed: 1 or more",
                                     options.step_tokens));
    if (options.most_steps < 1)
        throw InputError(
            fmt::format("effect: steps: found {}, allowed: 1 or more", options.most_steps));
    if (options.tensor_parallel < 1)
        throw InputError(fmt::format("effect: tensor parallel: found {}, allowed: 1 or more",
                                     options.tensor_parallel));
}

void check_profile(const Profile& profile, const Model& model) {
    const std::string name = printable(profile.name);
    if (!profile.has_tokens())
        throw InputError(fmt::format(
            "{}: found only counts, allowed: every token's experts, to simulate its layers", name));
    if (profile.experts != model.experts || profile.top_k != model.top_k)
        throw InputError(fmt::format(
            "{}: found top-{} of {} experts, allowed: top-{} of {} as {} "
            "has",
            name, profile.top_k, profile.experts, model.top_k, model.experts, quoted(model.name)));
    if (profile.layers < 1 || profile.layers > model.moe_layers())
        throw InputError(fmt::format("{}: found {} layers, allowed: 1 to {}, the MoE layers of {}",
                                     name, profile.layers, model.moe_layers(), quoted(model.name)));
}

void check_layout(const NamedLayout& one, const EffectInput& input, int tensor_parallel) {
    const std::string name = fmt::format("layout {}", quoted(one.name));
    check(one.layout, name);
    if (one.layout.layers() != input.profile.layers || one.layout.experts != input.profile.experts)
        throw InputError(
            fmt::format("{}: found {} layers of {} experts, allowed: {} of {} as the "
                        "profile has",
                        name, one.layout.layers(), one.layout.experts, input.profile.layers,
                        input.profile.experts));
    if (std::int64_t{one.layout.gpus} * tensor_parallel == input.machine.gpus()) return;
    const std::string shared =
        tensor_parallel > 1 ? fmt::format(", {} for each expert", tensor_parallel) : "";
    throw InputError(fmt::format("{}: found {} GPUs{}, allowed: as many as {} has, {} in all", name,
                                 one.layout.gpus, shared, quoted(input.machine.name),
                                 input.machine.gpus()));
}

}  // namespace

void check_sizes(const EffectInput& input, const EffectOptions& options) {
    check_options(input, options);
    check_profile(input.profile, input.model);
    for (const NamedLayout& one : input.layouts) check_layout(one, input, options.tensor_parallel);
}

void check_layers(const EffectInput& input, const EffectOptions& options,
                  const ProfileSteps& steps) {
    LayerOptions layer_options;
    layer_options.tensor_parallel = options.tensor_parallel;
    const Routing routing = steps.routing(0, 0);  // only its sizes matter
    for (const NamedLayout& one : input.layouts) {
        for (int layer = 0; layer < one.layout.layers(); ++layer) {
            const Placement placement = placement_of(one.layout, layer);
            const LayerInput what{input.machine, input.model, routing, placement};
            for (const SystemSpec& system : input.systems) {
                try {
                    check_layer(what, system, layer_options);
                } catch (const InputError& error) {
                    throw InputError(fmt::format("layout {}, layer {}: {}", quoted(one.name), layer,
                                                 error.what()));
                }
            }
        }
    }
}

}  // namespace moehub
