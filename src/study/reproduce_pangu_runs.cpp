#include "study/reproduce_pangu.hpp"
#include "study/training_runs.hpp"

#include <moehub/error.hpp>
#include <moehub/plan.hpp>
#include <moehub/presets.hpp>

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr int kAfter = 6144;  // NPUs

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

}  // namespace

PanguRuns::PanguRuns(std::function<void()> tick)
    : tick_(std::move(tick)),
      before_(load_trainer("mindspeed-base")),
      after_(load_trainer("mindspeed")) {}

TrainerSpec PanguRuns::trainer(const PanguTechniques& techniques) const {
    TrainerSpec made = before_;
    if (techniques.hierarchical) made.hopper.dispatcher = after_.hopper.dispatcher;
    if (techniques.overlap) made.hopper.overlaps = after_.hopper.overlaps;
    if (techniques.memory) made.recompute = after_.recompute;
    if (techniques.placement) made.imbalance = after_.imbalance;
    return made;
}

const TrainingStep& PanguRuns::step(const PanguCase& one) {
    tick_();
    return answers_.answer(row_of(one.npus), {"mindspeed", true}, trainer(one.techniques)).step;
}

/// With what overlaps as in the run itself; what is computed again is free.
std::string PanguRuns::optimised_layout() {
    const PublishedRun row = row_of(kAfter);
    const TrainingStep& chosen = step({"", kAllTechniques, kAfter});
    return fixed_layout(row, trainer(kAllTechniques)) +
           fmt::format(",overlap={}", name_of(chosen.layout.overlap));
}

TrainingStep PanguRuns::with_layers(int layers) {
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
        throw InputError(fmt::format("{} layers do not fit under the paper's layout", layers));
    return plan.best.front();
}

ShapeSearch PanguRuns::fastest_shape(int layers) {
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

}  // namespace moehub
