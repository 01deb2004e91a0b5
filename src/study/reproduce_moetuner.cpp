// A published percentage is the share of a time that is saved,
//
//     1 − time of MoETuner's layout / time of experts in order,
//
// with the mean and the tail (95th percentile) over layers and steps; of end to end it is the
// speed-up less 1.
#include "study/reproduce_moetuner.hpp"

#include <map>

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr int kMixtralLayers = 32;
const std::vector<std::string> kRoutings{"uniform", "lognormal:0.4,transition:0.5",
                                         kMoeTunerRouting};  ///< of methods

const Publication& paper() {
    return publication("moetuner");
}

/// Each setup and routing is placed and simulated once, however many figures use it.
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
    if (all.figure.empty()) return 1 + kRoutings.size();  // of methods one is that of one node
    return all.figure == "methods" ? kRoutings.size() : 1;
}

/// The paper's gain over two nodes is about twice that over one.
PublishedClaim more_over_two(const MoeTunerTrial& one, const MoeTunerTrial& two) {
    const double gain_one = one.of(kMoeTuner).speedup - 1;
    const double gain_two = two.of(kMoeTuner).speedup - 1;
    return paper().claim(
        "two-nodes", "gains more over two nodes than over one", gain_two > gain_one,
        fmt::format("{:.1f} % over two, {:.1f} % over one", 100 * gain_two, 100 * gain_one));
}

/// The paper does not say in which setup; one node is taken.
PublishedNumber all_to_all_share(const MoeTunerTrial& trial) {
    const LayoutEffect& before = trial.of(kContiguous);
    return paper().number("one-node", "all-to-all in the whole time, contiguous",
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

FigureResult setup_figure(const MoeTunerSetup& setup, const MoeTunerTrial& trial) {
    const LayoutEffect& before = trial.of(kContiguous);
    const LayoutEffect& after = trial.of(kMoeTuner);
    const auto number = [&](const char* what, double ours) {
        return paper().number(setup.figure, what, ours);
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
    const MoeTunerScope scope = options.quick ? quick_moetuner() : whole_moetuner();
    Reproduction all = begun(paper(), options);
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
    return ended(paper(), std::move(all));
}

}  // namespace moehub
