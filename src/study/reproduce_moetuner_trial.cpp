// One setup of the paper with one routing: layouts placed for the first half of the tokens, and
// simulated with the second.
//
// The paper's routing is not published. It says that some GPUs process 64 to 69 % of a layer's
// tokens; so experts are drawn with log-normal shares, with the smallest spread in tenths for which
// the busiest GPU of the worst layer has that much (seed 1). Every second choice follows the
// token's last layer's (transition 0.5): the paper shows such dependence without a number. Neither
// was set by a result.
#include "study/reproduce_moetuner.hpp"

#include <moehub/compare.hpp>
#include <moehub/presets.hpp>
#include <moehub/routing.hpp>

#include <algorithm>
#include <numeric>
#include <stdexcept>

namespace moehub {
namespace {

constexpr int kRanks = 4;  ///< expert parallel, in both setups

/// Far more than is needed: searches end by their work, and so always in the same layout.
constexpr double kTimeLimit = 600;

struct NamedMethod {
    const char* name;
    const char* method;
    bool unequal;
};
constexpr NamedMethod kMethods[] = {
    {"contiguous", "contiguous", false},
    {"moetuner", "moetuner", true},
    {"moetuner, equal", "moetuner", false},
    {"eplb", "eplb", false},
    {"joint", "joint", false},
};

ExpertLayout layout_by(const NamedMethod& method, const PlaceInput& input, int threads) {
    PlaceOptions options;
    options.method = method.method;
    options.unequal = method.unequal;
    options.time_limit = kTimeLimit;
    options.threads = threads;
    PlaceResult placed = place(input, options);
    if (placed.cut_short) throw std::logic_error("placing Mixtral's experts took ten minutes");
    return std::move(placed.layout);
}

}  // namespace

MoeTunerScope whole_moetuner() {
    return {32, 16384, 4096};
}

/// Fewer layers would be solved by the second integer program itself, which takes longer.
MoeTunerScope quick_moetuner() {
    return {10, 4096, 2048};
}

MoeTunerSetup one_node() {
    return {"one-node", "8 H100 in one node, EP4-TP2", with_gpus(load_machine("dgx-h100"), 8), 2};
}

/// 800 Gb/s a node, as the paper has it, are 100 Gb/s for each of its 8 GPUs.
MoeTunerSetup two_nodes() {
    return {"two-nodes", "16 H200 in two nodes, EP4-TP4",
            with_gpus(load_machine("h200-cluster", {"nic.bandwidth=100 Gb/s"}), 16), 4};
}

Profile profile_of(const Routing& routing, std::int64_t from, std::int64_t to) {
    Profile profile;
    profile.name = "generated";
    profile.layers = profile.model_layers = routing.layers;
    profile.experts = routing.experts;
    profile.top_k = routing.top_k;
    profile.tokens = to - from;
    profile.layer_numbers.resize(static_cast<std::size_t>(routing.layers));
    std::iota(profile.layer_numbers.begin(), profile.layer_numbers.end(), 0);
    for (int layer = 0; layer < routing.layers; ++layer) {
        for (std::int64_t token = from; token < to; ++token) {
            const auto chosen = routing.chosen_by(layer, token);
            profile.chosen.insert(profile.chosen.end(), chosen.begin(), chosen.end());
        }
    }
    count_choices(profile);
    return profile;
}

const LayoutEffect& MoeTunerTrial::of(std::string_view layout) const {
    const auto found = std::find_if(effect.layouts.begin(), effect.layouts.end(),
                                    [&](const LayoutEffect& one) { return one.layout == layout; });
    if (found == effect.layouts.end()) throw std::logic_error("a layout that was not simulated");
    return *found;
}

MoeTunerTrial run_moetuner(const MoeTunerSetup& setup, const std::string& routing,
                           const MoeTunerScope& scope, const ReproduceOptions& options) {
    const Model model = load_model("mixtral-8x7b");
    const Routing all = make_routing(parse_routing(routing), model, scope.tokens, scope.layers);
    const std::int64_t half = scope.tokens / 2;
    PlaceInput input;
    input.profiles = {profile_of(all, 0, half)};
    input.gpus = kRanks;
    input.nodes = setup.machine.nodes;
    const Profile held_out = profile_of(all, half, scope.tokens);

    MoeTunerTrial trial;
    for (const NamedMethod& method : kMethods) {
        if (options.progress) options.progress(0, static_cast<std::size_t>(scope.layers));
        trial.layouts.push_back({method.name, layout_by(method, input, options.threads)});
    }
    for (const NamedLayout& one : trial.layouts)
        trial.held_out.push_back(evaluate(held_out, one.layout, {.nodes = input.nodes}));
    EffectOptions effect_options;
    effect_options.tensor_parallel = setup.tensor_parallel;
    effect_options.attention_gpus = setup.tensor_parallel;
    effect_options.step_tokens = scope.step_tokens;
    effect_options.threads = options.threads;
    effect_options.progress = options.progress;
    const std::vector<SystemSpec> systems = load_systems({"megatron-te"});
    trial.effect =
        placement_effect({setup.machine, model, held_out, trial.layouts, systems}, effect_options);
    return trial;
}

}  // namespace moehub
