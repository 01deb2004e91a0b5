// A layout's time is that of its layers, each simulated with the tokens that came through it:
//
//     model = rest + MoE layers of the model · mean over layers and steps of a layer's time.
//
// The host's lead and everything else starts anew with each layer, as in model_time.cpp.
#include "study/placement_effect.hpp"

#include "base/input_error.hpp"
#include "base/parallel.hpp"
#include "base/quantity.hpp"
#include "base/utf8.hpp"
#include "study/compare.hpp"

#include <moehub/layer.hpp>
#include <moehub/model_time.hpp>

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

namespace moehub {
namespace {

using Times = std::vector<Ps>;

/// One layer in one step.
struct LayerTimes {
    Ps layer = 0;
    Ps all_to_all = 0;
    Ps processing = 0;
    bool fused = false;
    Times collectives;  ///< time of each GPU
};

/// Times in which rows were underway on each GPU, or others were awaited that had not come so far.
Times collectives_of(const LayerResult& result, int gpus) {
    Times times(static_cast<std::size_t>(gpus));
    for (const BusyInterval& one : result.intervals)
        if (one.what == BusyInterval::What::communication)
            times[static_cast<std::size_t>(one.gpu)] += one.end - one.begin;
    return times;
}

LayerTimes times_of(const LayerResult& result, int gpus) {
    const Ps steps_of_their_own = result.dispatch + result.combine;
    const bool fused = steps_of_their_own == 0;
    return {result.time, fused ? result.breakdown.communication : steps_of_their_own,
            result.breakdown.compute, fused, collectives_of(result, gpus)};
}

Ps mean_time(const Times& times) {
    const auto count = static_cast<Ps>(times.size());
    return (std::accumulate(times.begin(), times.end(), Ps{0}) + count / 2) / count;
}

TimeSpread spread_of(Times times) {
    std::sort(times.begin(), times.end());
    return {mean_time(times), times[(95 * times.size() + 99) / 100 - 1], times.back()};
}

/// All simulations: [system][layout][layer][step], flat.
class Runs {
  public:
    Runs(const EffectInput& input, const EffectOptions& options, const ProfileSteps& steps)
        : input_(input), steps_(steps), per_layout_(layers() * per_layer()) {
        layer_options_.tensor_parallel = options.tensor_parallel;
        times_.resize(input.systems.size() * input.layouts.size() * per_layout_);
        run_parallel(times_.size(), [&](std::size_t i) { times_[i] = run(i); },
                     {options.threads, options.progress});
    }

    LayoutEffect effect(std::size_t system, std::size_t layout) const {
        const std::size_t first = (system * input_.layouts.size() + layout) * per_layout_;
        LayoutEffect made;
        made.layout = input_.layouts[layout].name;
        made.system = input_.systems[system].name;
        made.layer = spread_of(of(first, per_layout_, &LayerTimes::layer));
        made.all_to_all = spread_of(of(first, per_layout_, &LayerTimes::all_to_all));
        made.processing = spread_of(of(first, per_layout_, &LayerTimes::processing));
        made.collectives = spread_of(collectives(first));
        made.fused = times_[first].fused;
        for (std::size_t layer = 0; layer < layers(); ++layer)
            made.by_layer.push_back(
                mean_time(of(first + layer * per_layer(), per_layer(), &LayerTimes::layer)));
        made.moe_layers = std::accumulate(made.by_layer.begin(), made.by_layer.end(), Ps{0});
        return made;
    }

  private:
    std::size_t layers() const { return static_cast<std::size_t>(input_.profile.layers); }
    std::size_t per_layer() const { return static_cast<std::size_t>(steps_.steps()); }

    LayerTimes run(std::size_t i) const {
        const auto step = static_cast<int>(i % per_layer());
        const auto layer = static_cast<int>(i / per_layer() % layers());
        const std::size_t pair = i / per_layout_;
        const ExpertLayout& layout = input_.layouts[pair % input_.layouts.size()].layout;
        const Routing routing = steps_.routing(layer, step);
        const Placement placement = placement_of(layout, layer);
        const LayerResult result =
            simulate_layer({input_.machine, input_.model, routing, placement},
                           input_.systems[pair / input_.layouts.size()], layer_options_);
        return times_of(result, input_.machine.gpus());
    }

    Times of(std::size_t first, std::size_t count, Ps LayerTimes::*which) const {
        Times some;
        for (std::size_t i = first; i < first + count; ++i) some.push_back(times_[i].*which);
        return some;
    }

    Times collectives(std::size_t first) const {
        Times some;
        for (std::size_t i = first; i < first + per_layout_; ++i)
            some.insert(some.end(), times_[i].collectives.begin(), times_[i].collectives.end());
        return some;
    }

    const EffectInput& input_;
    const ProfileSteps& steps_;
    std::size_t per_layout_;
    LayerOptions layer_options_;
    std::vector<LayerTimes> times_;
};

bool is_whole(const Model& model) {
    return model.attention.heads > 0 && model.vocab > 0;
}

/// Time of everything but the MoE layers, the same for every layout and system.
Ps rest_of_model(const EffectInput& input, const EffectOptions& options,
                 const ProfileSteps& steps) {
    ModelOptions model_options;
    model_options.layer.tensor_parallel = options.tensor_parallel;
    model_options.attention_gpus = options.attention_gpus;
    model_options.threads = 1;
    const Routing routing = steps.routing(0, 0);
    const Placement placement = placement_of(input.layouts.front().layout, 0);
    const ModelTime one = simulate_models({input.machine, input.model, routing, placement},
                                          {input.systems.front()}, model_options)
                              .front();
    return one.total - input.model.moe_layers() * one.moe->time;
}

std::vector<std::string> notes_of(const EffectInput& input, const EffectOptions& options,
                                  const ProfileSteps& steps) {
    std::vector<std::string> notes;
    if (steps.tokens() < options.step_tokens)
        notes.push_back(
            fmt::format("a step has {} tokens, all that the profile has", steps.tokens()));
    if (steps.incomplete() > 0)
        notes.push_back(
            fmt::format("{} tokens with fewer than {} experts in some layer were "
                        "passed over",
                        steps.incomplete(), input.profile.top_k));
    if (input.profile.layers < input.model.moe_layers())
        notes.push_back(
            fmt::format("{} of the model's {} MoE layers were simulated: the others "
                        "count as their mean",
                        input.profile.layers, input.model.moe_layers()));
    if (!is_whole(input.model))
        notes.push_back(
            "the model has no attention or no vocabulary: times are those of its MoE "
            "layers alone");
    return notes;
}

bool is_complete(const Profile& profile, std::int64_t token) {
    for (int layer = 0; layer < profile.layers; ++layer)
        for (const std::uint16_t expert : profile.chosen_by(layer, token))
            if (expert == Profile::kNobody) return false;
    return true;
}

void check_options(const EffectInput& input, const EffectOptions& options) {
    if (input.layouts.empty()) throw InputError("effect: found no layout, allowed: 1 or more");
    if (input.systems.empty()) throw InputError("effect: found no system, allowed: 1 or more");
    if (options.step_tokens < 1)
        throw input_error("effect: tokens of a step: found {}, allowed: 1 or more",
                          options.step_tokens);
    if (options.most_steps < 1)
        throw input_error("effect: steps: found {}, allowed: 1 or more", options.most_steps);
    if (options.tensor_parallel < 1)
        throw input_error("effect: tensor parallel: found {}, allowed: 1 or more",
                          options.tensor_parallel);
}

void check_profile(const Profile& profile, const Model& model) {
    const std::string name = printable(profile.name);
    if (!profile.has_tokens())
        throw input_error(
            "{}: found only counts, allowed: every token's experts, to simulate its layers", name);
    if (profile.experts != model.experts || profile.top_k != model.top_k)
        throw input_error("{}: found top-{} of {} experts, allowed: top-{} of {} as {} has", name,
                          profile.top_k, profile.experts, model.top_k, model.experts,
                          quoted(model.name));
    if (profile.layers < 1 || profile.layers > model.moe_layers())
        throw input_error("{}: found {} layers, allowed: 1 to {}, the MoE layers of {}", name,
                          profile.layers, model.moe_layers(), quoted(model.name));
}

void check_layout(const NamedLayout& one, const EffectInput& input, int tensor_parallel) {
    const std::string name = fmt::format("layout {}", quoted(one.name));
    check(one.layout, name);
    if (one.layout.layers() != input.profile.layers || one.layout.experts != input.profile.experts)
        throw input_error("{}: found {} layers of {} experts, allowed: {} of {} as the profile has",
                          name, one.layout.layers(), one.layout.experts, input.profile.layers,
                          input.profile.experts);
    if (std::int64_t{one.layout.gpus} * tensor_parallel == input.machine.gpus()) return;
    const std::string shared =
        tensor_parallel > 1 ? fmt::format(", {} for each expert", tensor_parallel) : "";
    throw input_error("{}: found {} GPUs{}, allowed: as many as {} has, {} in all", name,
                      one.layout.gpus, shared, quoted(input.machine.name), input.machine.gpus());
}

}  // namespace

double saved(Ps before, Ps after) {
    return before > 0 ? 1 - ratio(after, before) : 0;
}

double faster(const LayoutEffect& one, const LayoutEffect& than) {
    return one.model > 0 ? ratio(than.model, one.model) : ratio(than.moe_layers, one.moe_layers);
}

PlacementEffect placement_effect(const EffectInput& input, const EffectOptions& options) {
    check_sizes(input, options);
    const ProfileSteps steps(input.profile, options.step_tokens, options.most_steps);
    check_layers(input, options, steps);
    const bool whole = is_whole(input.model);
    const Ps rest = whole ? rest_of_model(input, options, steps) : 0;

    const Runs runs(input, options, steps);
    PlacementEffect all{steps.tokens(), steps.steps(), {}, notes_of(input, options, steps)};
    for (std::size_t system = 0; system < input.systems.size(); ++system) {
        const std::size_t first = all.layouts.size();
        for (std::size_t layout = 0; layout < input.layouts.size(); ++layout) {
            LayoutEffect one = runs.effect(system, layout);
            if (whole) one.model = rest + input.model.moe_layers() * one.layer.mean;
            const LayoutEffect& before = layout == 0 ? one : all.layouts[first];
            one.speedup = faster(one, before);
            all.layouts.push_back(std::move(one));
        }
    }
    return all;
}

ProfileSteps::ProfileSteps(const Profile& profile, std::int64_t step_tokens, int most_steps)
    : profile_(profile) {
    for (std::int64_t token = 0; token < profile.tokens; ++token)
        if (is_complete(profile, token)) complete_.push_back(token);
    const auto count = static_cast<std::int64_t>(complete_.size());
    if (count == 0)
        throw input_error(
            "{}: tokens: found none with {} experts in every layer, allowed: at least one for each "
            "GPU",
            printable(profile.name), profile.top_k);
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
                    throw input_error("layout {}, layer {}: {}", quoted(one.name), layer,
                                      error.what());
                }
            }
        }
    }
}

}  // namespace moehub
