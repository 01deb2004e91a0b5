/// What a layout of experts is worth in time: every MoE layer of a profile simulated under each
/// layout, with the tokens that were recorded.
///
///     const std::vector<NamedLayout> layouts{{"contiguous", contiguous_layout({26, 64}, 8)},
///                                            {"joint", result.layout}};
///     const PlacementEffect effect =
///         placement_effect({machine, model, profile, layouts, load_systems({"megatron-te"})});
///     for (const LayoutEffect& one : effect.layouts)
///         fmt::print("{}: {:.1f} ms, {:.2f}×\n", one.layout, to_us(one.model) / 1000,
///                    one.speedup);
///
/// A step is a run of tokens, all GPUs together, that passes through all layers; steps follow one
/// another in the profile, and every GPU is home to an equal part of each. Same input, same bytes
/// out, on any number of threads.
#pragma once
#include <moehub/expert_layout.hpp>
#include <moehub/machine.hpp>
#include <moehub/model.hpp>
#include <moehub/profile.hpp>
#include <moehub/system.hpp>
#include <moehub/units.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace moehub {

struct NamedLayout {
    std::string name;
    ExpertLayout layout;
};

/// What is compared; all of it must outlive the call.
struct EffectInput {
    const Machine& machine;  ///< sized as wanted: a layout's GPUs · tensor_parallel
    const Model& model;      ///< a model with the profile's experts and top-k
    const Profile& profile;  ///< a profile with tokens
    const std::vector<NamedLayout>& layouts;  ///< others are measured against the first
    const std::vector<SystemSpec>& systems;
};

/// Tokens of a step, all GPUs together: a prefill of a few prompts.
inline constexpr std::int64_t kEffectTokens = 8192;

struct EffectOptions {
    int tensor_parallel = 1;  ///< GPUs that share each expert; then a layout's GPUs are groups
    std::int64_t step_tokens = kEffectTokens;  ///< tokens of a step; a shorter profile is one step
    int most_steps = 4;                        ///< most of the profile's steps, from the first
    int attention_gpus = 0;  ///< GPUs that share attention (ModelOptions); 0: data parallel
    int threads = 0;         ///< layers simulated at a time; 0: as many as there are cores
    /// Called after each layer with (layers done, layers in all), by one thread at a time. May be
    /// empty.
    std::function<void(std::size_t, std::size_t)> progress;
};

/// How one time is spread over all layers and steps.
struct TimeSpread {
    Ps mean = 0;
    Ps p95 = 0;  ///< smallest time that 95 % do not exceed
    Ps worst = 0;
};

/// One layout under one system.
struct LayoutEffect {
    std::string layout;
    std::string system;
    TimeSpread layer;  ///< time of a MoE layer, until the last GPU has its tokens' outputs
    /// Dispatch and combine together, where rows move in steps of their own, each from when the
    /// last GPU began to when the last ended: waiting for a GPU that still computes is not in it.
    /// Where they are fused with the experts (`fused`): what of it no kernel hides on the GPU that
    /// computes longest.
    TimeSpread all_to_all;
    bool fused = false;
    /// What a GPU's collectives take, as a profiler shows it: from when the GPU launches them, so
    /// that waiting for others is in it. Every GPU of every layer and step counts by itself.
    TimeSpread collectives;
    /// Kernels of the GPU that computes longest: its experts for the most part.
    TimeSpread processing;
    std::vector<Ps> by_layer;  ///< time of each layer of the profile: mean over steps
    Ps moe_layers = 0;         ///< sum of by_layer
    /// The whole model, forward: the mean MoE layer as often as the model has some, and the rest
    /// as simulate_models() times it, which is the same for all. 0: the model has no rest.
    Ps model = 0;
    /// The first layout's time over this one's, same system: of the model, or of the MoE layers
    /// where that is not known.
    double speedup = 1;
};

struct PlacementEffect {
    std::int64_t step_tokens = 0;
    int steps = 0;
    std::vector<LayoutEffect> layouts;  ///< sorted by system, then in the order of the layouts
    std::vector<std::string> notes;     ///< what the user should know, a line each
};

/// 1 − after / before: the share of a time that is saved; 0 where there was none.
double saved(Ps before, Ps after);

/// How many times as fast one layout is as another, same system: the model, or its MoE layers where
/// that is not known.
double faster(const LayoutEffect& one, const LayoutEffect& than);

/// Throws InputError, before anything is simulated, for a profile without tokens, sizes that do not
/// fit together, and a system that cannot run a layout.
PlacementEffect placement_effect(const EffectInput& input, const EffectOptions& options = {});

}  // namespace moehub
