// A published percentage is the share of a time that is saved,
//
//     1 − time of MoETuner's layout / time of experts in order,
//
// with the mean and the tail (95th percentile) over layers and steps; of end to end it is the
// speed-up less 1.
//
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

#include <algorithm>
#include <map>
#include <numeric>
#include <stdexcept>

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr int kMixtralLayers = 32;
const std::vector<std::string> kRoutings{"uniform", "lognormal:0.4,transition:0.5",
                                         kMoeTunerRouting};  ///< routings of the figure "methods"

const Publication& moetuner_paper() {
    return publication("moetuner");
}

constexpr int kRanks = 4;  ///< ranks of expert parallelism, in both setups

/// Seconds, far more than needed: searches end by their work, and so always in the same layout.
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

/// Trials: each setup and routing is placed and simulated once, however many figures use it.
class Trials {
  public:
    Trials(const MoeTunerScope& scope, const ReproduceOptions& options, std::size_t total)
        : scope_(scope), options_(options), total_(total) {}

    const MoeTunerTrial& of(const MoeTunerSetup& setup, const std::string& routing) {
        const auto key = std::pair(setup.figure, routing);
        const auto known = trials_.find(key);
        if (known != trials_.end()) return known->second;
        ReproduceOptions one = options_;
        const std::size_t before = trials_.size();
        if (options_.progress)
            one.progress = [this, before](std::size_t done, std::size_t of_one) {
                options_.progress(before * of_one + done, total_ * of_one);
            };
        return trials_[key] = run_moetuner(setup, routing, scope_, one);
    }

  private:
    MoeTunerScope scope_;
    const ReproduceOptions& options_;
    std::size_t total_;
    std::map<std::pair<std::string, std::string>, MoeTunerTrial> trials_;
};

/// Only what is asked for is run.
std::size_t trials_of(const Reproduction& all) {
    if (all.figure.empty()) return 1 + kRoutings.size();  // one of "methods" is one node's
    return all.figure == "methods" ? kRoutings.size() : 1;
}

/// The paper's gain over two nodes is about twice that over one.
PublishedClaim more_over_two(const MoeTunerTrial& one, const MoeTunerTrial& two) {
    const double gain_one = one.of(kMoeTuner).speedup - 1;
    const double gain_two = two.of(kMoeTuner).speedup - 1;
    return moetuner_paper().claim(
        "two-nodes", "gains more over two nodes than over one", gain_two > gain_one,
        fmt::format("{:.1f} % over two, {:.1f} % over one", 100 * gain_two, 100 * gain_one));
}

/// All-to-all's share of the time. The paper does not say in which setup; one node is taken.
PublishedNumber all_to_all_share(const MoeTunerTrial& trial) {
    const LayoutEffect& before = trial.of(kContiguous);
    return moetuner_paper().number("one-node", "all-to-all in the whole time, contiguous",
                                   static_cast<double>(kMixtralLayers * before.collectives.mean) /
                                       static_cast<double>(before.model));
}

FigureTable times_table(const MoeTunerSetup& setup, const MoeTunerTrial& trial) {
    FigureTable table{setup.figure,
                      setup.title +
                          ": times in µs over layers and steps, and what is gained end "
                          "to end",
                      {"layout"},
                      {{"layer", NumberKind::time},
                       {"all-to-all", NumberKind::time},
                       {"p95", NumberKind::time},
                       {"worst", NumberKind::time},
                       {"token processing", NumberKind::time},
                       {"p95 of it", NumberKind::time},
                       {"worst of it", NumberKind::time},
                       {"whole model", NumberKind::time},
                       {"end to end", NumberKind::share}}};
    for (const LayoutEffect& one : trial.effect.layouts)
        table.rows.push_back(
            {{one.layout},
             {to_us(one.layer.mean), to_us(one.collectives.mean), to_us(one.collectives.p95),
              to_us(one.collectives.worst), to_us(one.processing.mean), to_us(one.processing.p95),
              to_us(one.processing.worst), to_us(one.model), one.speedup - 1}});
    return table;
}

}  // namespace

MoeTunerSetup one_node() {
    return {"one-node", "8 H100 in one node, EP4-TP2", with_gpus(load_machine("dgx-h100"), 8), 2};
}

/// Two nodes: 800 Gb/s a node, as the paper has it, are 100 Gb/s for each of its 8 GPUs.
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
    const PlaceInput input{
        .profiles = {profile_of(all, 0, half)}, .gpus = kRanks, .nodes = setup.machine.nodes};
    const Profile held_out = profile_of(all, half, scope.tokens);

    MoeTunerTrial trial;
    for (const NamedMethod& method : kMethods) {
        if (options.progress) options.progress(0, static_cast<std::size_t>(scope.layers));
        trial.layouts.push_back({method.name, layout_by(method, input, options.threads)});
    }
    for (const NamedLayout& one : trial.layouts)
        trial.held_out.push_back(evaluate(held_out, one.layout, {.nodes = input.nodes}));
    const EffectOptions effect_options{.tensor_parallel = setup.tensor_parallel,
                                       .step_tokens = scope.step_tokens,
                                       .attention_gpus = setup.tensor_parallel,
                                       .threads = options.threads,
                                       .progress = options.progress};
    const std::vector<SystemSpec> systems = load_systems({"megatron-te"});
    trial.effect =
        placement_effect({setup.machine, model, held_out, trial.layouts, systems}, effect_options);
    return trial;
}

FigureResult setup_figure(const MoeTunerSetup& setup, const MoeTunerTrial& trial) {
    const LayoutEffect& before = trial.of(kContiguous);
    const LayoutEffect& after = trial.of(kMoeTuner);
    const auto number = [&](const char* what, double ours) {
        return moetuner_paper().number(setup.figure, what, ours);
    };
    return {
        {number("end to end, faster by", after.speedup - 1),
         number("token processing, tail saved", saved(before.processing.p95, after.processing.p95)),
         number("token processing, mean saved",
                saved(before.processing.mean, after.processing.mean)),
         number("all-to-all, tail saved", saved(before.collectives.p95, after.collectives.p95)),
         number("all-to-all, mean saved", saved(before.collectives.mean, after.collectives.mean))},
        {},
        {times_table(setup, trial)}};
}

FigureResult methods_figure(const std::vector<NamedTrial>& trials) {
    FigureTable table{"methods",
                      "8 H100 in one node, EP4-TP2, held-out tokens: what each method makes of "
                      "more and less even routing",
                      {"routing", "layout"},
                      {{"load max/mean"},
                       {"GPUs per token"},
                       {"transitions off GPU", NumberKind::share},
                       {"heaviest pair"},
                       {"layer µs", NumberKind::time},
                       {"end to end", NumberKind::share}}};
    for (const NamedTrial& named : trials) {
        for (std::size_t i = 0; i < named.trial->layouts.size(); ++i) {
            const Evaluation& seen = named.trial->held_out[i];
            const LayoutEffect& one = named.trial->effect.layouts[i];
            table.rows.push_back(
                {{named.routing, one.layout},
                 {seen.load_max_over_mean, seen.gpus_per_token, seen.off_gpu_transitions,
                  seen.heaviest_pair, to_us(one.layer.mean), one.speedup - 1}});
        }
    }
    return {{}, {}, {std::move(table)}};
}

Reproduction reproduce_moetuner(const ReproduceOptions& options) {
    const MoeTunerScope scope = options.quick ? kQuickMoeTuner : kWholeMoeTuner;
    Reproduction all = begun(moetuner_paper(), options);
    for (std::string& sentence : all.setup)
        sentence = fmt::format(fmt::runtime(sentence), fmt::arg("routing", kMoeTunerRouting),
                               fmt::arg("layers", scope.layers), fmt::arg("tokens", scope.tokens),
                               fmt::arg("step", scope.step_tokens));
    Trials trials(scope, options, trials_of(all));
    if (is_wanted(all, "one-node")) {
        const MoeTunerTrial& trial = trials.of(one_node(), kMoeTunerRouting);
        FigureResult result = setup_figure(one_node(), trial);
        result.numbers.push_back(all_to_all_share(trial));
        add(std::move(result), all);
    }
    if (is_wanted(all, "two-nodes")) {
        const MoeTunerTrial& trial = trials.of(two_nodes(), kMoeTunerRouting);
        FigureResult result = setup_figure(two_nodes(), trial);
        if (is_wanted(all, "one-node"))
            result.claims = {more_over_two(trials.of(one_node(), kMoeTunerRouting), trial)};
        add(std::move(result), all);
    }
    if (is_wanted(all, "methods")) {
        std::vector<NamedTrial> named;
        for (const std::string& routing : kRoutings)
            named.push_back({routing, &trials.of(one_node(), routing)});
        add(methods_figure(named), all);
    }
    return ended(std::move(all));
}

}  // namespace moehub
