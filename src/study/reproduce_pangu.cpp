// The training runs of the Pangu Ultra MoE paper (arXiv 2505.04519), as the planner times them: the
// baseline, the optimised run, and what lies between.
//
// MFU is tokens/s · FLOPs of a token / peak, with all of attention's scores counted, below the
// diagonal or not, and multi-token prediction as work: with half of them, both published pairs of
// MFU and tokens/s would ask for a card that does not exist (presets/gpus/ascend-910b.toml).
#include "base/input_error.hpp"
#include "study/reproduce_paper.hpp"

#include <moehub/plan.hpp>
#include <moehub/presets.hpp>
#include <moehub/shape_search.hpp>
#include <moehub/training_runs.hpp>

#include <algorithm>
#include <functional>
#include <limits>

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr int kBefore = 4096;  // NPUs of the baseline
constexpr int kAfter = 6144;
constexpr int kChosenLayers = 61;
constexpr int kOtherLayers = 66;

const Publication& pangu_paper() {
    return publication("pangu");
}

/// What the paper's run has beyond its baseline.
struct PanguTechniques {
    bool hierarchical = false;  ///< all-gather between nodes, all-to-all inside
    bool overlap = false;       ///< forward and backward of two micro-batches beside each other
    bool memory = false;        ///< recomputation by operator, and tensors swapped to the host
    bool placement = false;     ///< experts placed by their load
};
constexpr PanguTechniques kAllTechniques{true, true, true, true};

struct PanguCase {
    std::string name;
    PanguTechniques techniques;
    int npus = 4096;
};

/// The paper's layout: expert parallelism of 4 times the 8 of tensor parallelism, each expert
/// whole.
PublishedRun row_of(int npus) {
    PublishedRun row;
    row.model = "pangu-ultra-moe";
    row.machine = "ascend-910b-cluster";
    row.gpus = npus;
    row.precision = "bf16";
    row.sequence = 8192;
    row.cells = {{"tp", "8"},  {"pp", "16"}, {"vpp", "2"}, {"cp", "1"},
                 {"ep", "32"}, {"etp", "1"}, {"mb", "2"},  {"sharding", "zero1"}};
    row.source = "Pangu Ultra MoE";
    return row;
}

/// Times cases; equal ones once. `tick` is called between and in them, and may throw.
class PanguRuns {
  public:
    explicit PanguRuns(std::function<void()> tick) : tick_(std::move(tick)) {}

    /// The step under the paper's layout, as `moehub validate` answers its rows.
    const TrainingStep& step(const PanguCase& one) {
        tick_();
        return answers_.answer(row_of(one.npus), {"mindspeed", true}, trainer(one.techniques)).step;
    }

    /// The step with all techniques on 6,144 NPUs, with `layers` layers.
    TrainingStep with_layers(int layers) {
        const TrainingClock clock = answers_.clock(row_of(kAfter), trainer(kAllTechniques));
        TrainingRun run = clock.run();
        run.model.layers = layers;
        PlanOptions options;
        options.fixed = optimised_layout();
        options.top = 1;
        options.exact = false;
        options.progress = [this](std::size_t, std::size_t) { tick_(); };
        const Plan plan = plan_training(TrainingClock(run, clock), options);
        if (plan.best.empty())
            throw input_error("{} layers do not fit under the paper's layout", layers);
        return plan.best.front();
    }

    /// The fastest shape of so many layers with as many parameters, all and active, within 5 %; its
    /// `base` is the model's own.
    ShapeSearch fastest_shape(int layers) {
        const TrainingRun run = training_run(row_of(kAfter), trainer(kAllTechniques));
        const auto around = [](std::int64_t count) {
            return ParameterWindow{static_cast<double>(count), 0.05 * static_cast<double>(count)};
        };
        ShapeSearchOptions options;
        options.axes = load_shape_axes("default", run.model);
        options.axes.layers = {layers};
        options.total = around(parameters(run.model));
        options.active = around(multiplied_parameters(run.model));
        options.fixed = optimised_layout();
        options.top = 1;
        options.progress = [this](std::size_t, std::size_t) { tick_(); };
        return search_shapes(run, options);
    }

  private:
    TrainerSpec trainer(const PanguTechniques& techniques) const {
        TrainerSpec made = before_;
        if (techniques.hierarchical) made.hopper.dispatcher = after_.hopper.dispatcher;
        if (techniques.overlap) made.hopper.overlaps = after_.hopper.overlaps;
        if (techniques.memory) made.recompute = after_.recompute;
        if (techniques.placement) made.imbalance = after_.imbalance;
        return made;
    }

    /// A layout with what overlaps as in the run itself; what is computed again is free.
    PartialLayout optimised_layout() {
        const TrainingStep& chosen = step({"", kAllTechniques, kAfter});
        PartialLayout fixed = fixed_layout(row_of(kAfter), trainer(kAllTechniques));
        fixed.overlap = chosen.layout.overlap;
        return fixed;
    }

    std::function<void()> tick_;
    TrainerSpec before_ = load_trainer("mindspeed-base");
    TrainerSpec after_ = load_trainer("mindspeed");
    RunAnswers answers_;
};

double thousands_a_second(const TrainingStep& step, int npus) {
    return step.tokens_per_second * npus * 1e-3;
}

std::vector<PanguCase> added_in_turn() {
    PanguTechniques now;
    std::vector<PanguCase> cases{{"baseline", now, kBefore}};
    const auto add = [&](const char* name, bool PanguTechniques::*technique) {
        now.*technique = true;
        cases.push_back({name, now, kBefore});
    };
    add("+ hierarchical all-to-all", &PanguTechniques::hierarchical);
    add("+ recomputation by operator, swapping", &PanguTechniques::memory);
    add("+ pipe overlap",
        &PanguTechniques::overlap);  // whose layers cannot be computed again whole
    add("+ experts placed by load", &PanguTechniques::placement);
    cases.push_back({"+ 6,144 NPUs: optimised", now, kAfter});
    return cases;
}

std::vector<PanguCase> left_out() {
    std::vector<PanguCase> cases;
    const auto add = [&](const char* name, bool PanguTechniques::*technique) {
        PanguTechniques others = kAllTechniques;
        others.*technique = false;
        cases.push_back({name, others, kAfter});
    };
    add("optimised without hierarchical all-to-all", &PanguTechniques::hierarchical);
    add("optimised without pipe overlap", &PanguTechniques::overlap);
    add("optimised without recomputation by operator, so without overlap",
        &PanguTechniques::memory);
    cases.back().techniques.overlap = false;
    add("optimised without placement", &PanguTechniques::placement);
    return cases;
}

FigureTable::Row table_row(const PanguCase& one, const TrainingStep& step) {
    const StepParts& parts = step.parts;
    const auto share = [&](double seconds) { return seconds / step.seconds; };
    return {{one.name, fmt::format("{}", one.npus), name_of(step.layout.recompute),
             name_of(step.layout.offload)},
            {step.mfu, thousands_a_second(step, one.npus), share(parts.ep), share(parts.tp),
             share(parts.recomputed), share(parts.imbalance), share(parts.bubble + parts.pp),
             share(parts.offload), step.memory.sum() * 1e-9}};
}

FigureResult parameters_figure(PanguRuns&) {
    const Model model = load_model("pangu-ultra-moe");
    const auto billions = [](std::int64_t count) { return static_cast<double>(count) * 1e-9; };
    return {{pangu_paper().number("parameters", "billions", billions(parameters(model))),
             pangu_paper().number("parameters", "billions active",
                                  billions(multiplied_parameters(model)))}};
}

FigureResult training_figure(PanguRuns& runs) {
    const TrainingStep& before = runs.step({"", {}, kBefore});
    const TrainingStep& after = runs.step({"", kAllTechniques, kAfter});
    const auto number = [](const char* what, double ours) {
        return pangu_paper().number("training", what, ours);
    };
    return {{number("MFU, baseline", before.mfu), number("MFU, optimised", after.mfu),
             number("thousand tokens/s, baseline", thousands_a_second(before, kBefore)),
             number("thousand tokens/s, optimised", thousands_a_second(after, kAfter))}};
}

FigureResult techniques_figure(PanguRuns& runs) {
    FigureTable table{"techniques",
                      "technique by technique, then the optimised run without each; shares are of "
                      "the step",
                      {"run", "NPUs", "recomputed", "in the host's memory"},
                      {{"MFU", NumberKind::share},
                       {"thousand tokens/s", NumberKind::size},
                       {"rows travel", NumberKind::share},
                       {"TP", NumberKind::share},
                       {"recomputation", NumberKind::share},
                       {"imbalance", NumberKind::share},
                       {"bubble", NumberKind::share},
                       {"swapping", NumberKind::share},
                       {"GB", NumberKind::size}},
                      {},
                      {"The paper publishes no such table: these are the planner's own.",
                       "Nothing is swapped where something fits without."}};
    double slowest_gain = std::numeric_limits<double>::infinity();
    double before = 0;
    for (const PanguCase& one : added_in_turn()) {
        const TrainingStep& step = runs.step(one);
        table.rows.push_back(table_row(one, step));
        if (before > 0 && one.npus == kBefore)
            slowest_gain = std::min(slowest_gain, step.mfu / before);
        before = step.mfu;
    }
    for (const PanguCase& one : left_out()) table.rows.push_back(table_row(one, runs.step(one)));
    return {{},
            {pangu_paper().claim(
                "techniques", "each technique raises MFU", slowest_gain >= 1,
                fmt::format("the least of them by {:.1f} %", 100 * (slowest_gain - 1)))},
            {std::move(table)}};
}

FigureResult layers_figure(PanguRuns& runs) {
    FigureTable table{"layers",
                      "the same model with other numbers of layers, all else as chosen",
                      {"layers"},
                      {{"billions", NumberKind::size},
                       {"MFU", NumberKind::share},
                       {"thousand tokens/s", NumberKind::size},
                       {"against 61 layers", NumberKind::ratio},
                       {"bubble", NumberKind::share}}};
    const double chosen = runs.with_layers(kChosenLayers).tokens_per_second;
    double after = 0;  // throughput with a layer more than chosen
    Model model = load_model("pangu-ultra-moe");
    for (int layers = kChosenLayers - 3; layers <= kOtherLayers; ++layers) {
        const TrainingStep step = runs.with_layers(layers);
        model.layers = layers;
        if (layers == kChosenLayers + 1) after = step.tokens_per_second;
        table.rows.push_back({{fmt::format("{}", layers)},
                              {static_cast<double>(parameters(model)) * 1e-9, step.mfu,
                               thousands_a_second(step, kAfter), step.tokens_per_second / chosen,
                               step.parts.bubble / step.seconds}});
    }
    const ShapeSearch other = runs.fastest_shape(kOtherLayers);
    const TimedShape& fastest = other.best.front();
    table.notes = {
        fmt::format("The fastest of {} shapes with 66 layers and as many parameters: {}.",
                    other.timed, to_text_of_shape(fastest.model))};
    return {
        {pangu_paper().number("layers", "tokens/s over the fastest with 66 layers",
                              other.base->step.tokens_per_second / fastest.step.tokens_per_second)},
        {pangu_paper().claim("layers",
                             "61 layers and multi-token prediction fill the pipeline evenly",
                             after < 0.95 * chosen,
                             fmt::format("a layer more costs {:.1f} % of tokens/s, {:.1f} % of it "
                                         "work",
                                         100 * (1 - after / chosen),
                                         100 * (1 - double{kChosenLayers} / (kChosenLayers + 1))))},
        {std::move(table)}};
}

}  // namespace

/// All of it takes a minute: there is nothing that --quick would leave out.
Reproduction reproduce_pangu(const ReproduceOptions& options) {
    const std::vector<std::pair<const char*, FigureResult (*)(PanguRuns&)>> figures{
        {"parameters", parameters_figure},
        {"training", training_figure},
        {"techniques", techniques_figure},
        {"layers", layers_figure}};
    Reproduction all = begun(pangu_paper(), options);
    std::size_t done = 0;
    const auto tick = [&] {
        if (options.progress) options.progress(done, figures.size());
    };
    PanguRuns runs(tick);
    for (const auto& [name, make] : figures) {
        if (is_wanted(all, name)) add(make(runs), all);
        ++done;
        tick();
    }
    return ended(std::move(all));
}

}  // namespace moehub
