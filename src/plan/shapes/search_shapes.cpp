/// Shapes within the windows, each timed under a few parallel layouts: those that suit the base
/// model best and cut it in different ways. Layouts are not searched for each shape, so a shape
/// that needs another one is ranked too low: its own plan_training() says what it could do.
///
/// Thousands of shapes are timed in a second, as their communication is that of the base model by
/// bytes: within 4 % of a clock of their own, for half to twice the base's experts and choices.
#include "base/input_error.hpp"
#include "base/parallel.hpp"
#include "plan/search/search.hpp"
#include "plan/shapes/shape_fields.hpp"
#include "plan/step_model.hpp"

#include <moehub/error.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace moehub {
namespace {

/// Whether two layouts cut a model's layers, heads, experts and batch alike.
bool cut_alike(const ParallelLayout& one, const ParallelLayout& other) {
    return one.tp == other.tp && one.cp == other.cp && one.pp == other.pp && one.vpp == other.vpp &&
           one.ep == other.ep && one.etp == other.etp && one.system == other.system;
}

/// Each layout with more and more computed again or in the host's memory, unless that is fixed:
/// larger shapes fit with what the base model does without.
std::vector<ParallelLayout> with_savings(const std::vector<ParallelLayout>& layouts,
                                         const PartialLayout& fixed) {
    std::vector<ParallelLayout> all = layouts;
    const auto add = [&all](const ParallelLayout& one) {
        if (std::find(all.begin(), all.end(), one) == all.end()) all.push_back(one);
    };
    for (ParallelLayout layout : layouts)
        for (const bool moved : {layout.offload.activations, true}) {
            if (moved != layout.offload.activations && fixed.offload) continue;
            layout.offload.activations = moved;
            add(layout);
            if (fixed.recompute) continue;
            for (const Recompute& more : {selective_recompute(), Recompute{.all = true}}) {
                ParallelLayout saved = layout;
                saved.recompute = more;
                add(saved);
            }
        }
    return all;
}

/// Half of the time goes to the base model's layouts, half to shapes, more or less.
std::function<void(std::size_t, std::size_t)> half_of(const ShapeSearchOptions& options,
                                                      std::size_t half) {
    if (!options.progress) return {};
    return [&options, half](std::size_t done, std::size_t all) {
        options.progress(half * all + done, 2 * all);
    };
}

/// The base model's best layouts that cut it in different ways.
std::vector<ParallelLayout> layouts_for(const TrainingRun& run, const ShapeSearchOptions& options) {
    constexpr std::size_t kLookedAt = 200;  ///< layouts: many of the best differ in little
    PlanOptions plan_options;
    plan_options.fixed = options.fixed;
    plan_options.systems = options.systems;
    plan_options.top = kLookedAt;
    plan_options.exact = false;
    plan_options.threads = options.threads;
    plan_options.progress = half_of(options, 0);
    const Plan plan = plan_training(run, plan_options);
    std::vector<ParallelLayout> layouts;
    for (const TrainingStep& step : plan.best) {
        const bool known = std::any_of(layouts.begin(), layouts.end(), [&](const auto& one) {
            return cut_alike(one, step.layout);
        });
        if (!known) layouts.push_back(step.layout);
        if (layouts.size() == options.layouts) break;
    }
    if (layouts.empty())
        throw input_error(
            "{} does not fit on {} GPUs under any parallel layout: shapes are timed under those "
            "that suit it; allowed: more GPUs, or a smaller --model",
            run.model.name, run.gpus());
    return with_savings(layouts, options.fixed);
}

/// Times shapes of one run. What communication takes is simulated for the base model alone; other
/// shapes ask for as many bytes.
class ShapeClock {
  public:
    ShapeClock(const TrainingRun& run, const std::vector<ParallelLayout>& layouts)
        : run_(run),
          layouts_(layouts),
          communication_(std::make_shared<Communication>(run.machine, run.model, run.routing)) {}

    /// The fastest of the layouts that run and fit.
    std::optional<TrainingStep> fastest(const Model& model) const {
        TrainingRun run = run_;
        run.model = model;
        StepModel steps(run, std::make_shared<Communication>(communication_, model));
        std::optional<TrainingStep> best;
        for (const ParallelLayout& layout : layouts_) {
            if (!why_not(run, layout).empty()) continue;
            TrainingStep step = steps.step(layout, false);
            if (!step.fits) continue;
            if (!best || step.tokens_per_second > best->tokens_per_second) best = std::move(step);
        }
        return best;
    }

  private:
    const TrainingRun& run_;
    const std::vector<ParallelLayout>& layouts_;
    std::shared_ptr<Communication> communication_;
};

std::string none_runs(const TrainingRun& run, const ShapeSearch& found) {
    const ParallelLayout& layout = found.layouts.front();
    const std::string why = why_not(run, layout);
    if (!why.empty())
        return fmt::format("shapes: none of {} in the windows runs and fits: {}: {}", found.within,
                           run.model.name, why);
    return fmt::format(
        "shapes: none of {} in the windows runs and fits under {}, allowed: more recomputation, "
        "more GPUs, other axes",
        found.within, to_text(layout));
}

std::vector<TimedShape> timed(const std::vector<Model>& shapes, const ShapeTimer& timer,
                              const ShapeSearchOptions& options) {
    std::vector<std::optional<TrainingStep>> steps(shapes.size());
    ParallelOptions parallel;
    parallel.threads = options.threads;
    parallel.progress = options.progress;
    run_parallel(
        shapes.size(), [&](std::size_t i) { steps[i] = timer(shapes[i]); }, parallel);
    std::vector<TimedShape> out;
    for (std::size_t i = 0; i < shapes.size(); ++i)
        if (steps[i])
            out.push_back({shapes[i], parameters(shapes[i]), multiplied_parameters(shapes[i]),
                           std::move(*steps[i])});
    return out;
}

/// Whether a shape is before another: of equals the smaller, then the first on the axes (a stable
/// sort).
bool faster(const TimedShape& one, const TimedShape& other) {
    return std::tuple(-one.step.tokens_per_second, one.total) <
           std::tuple(-other.step.tokens_per_second, other.total);
}

AxisBest best_of(const ShapeField& field, const ShapeAxes& axes,
                 const std::vector<TimedShape>& sorted) {
    AxisBest best{std::string(field.key), axes.*field.axis, {}};
    for (const int value : best.values) {
        const auto first = std::find_if(sorted.begin(), sorted.end(), [&](const TimedShape& one) {
            return field.get(one.model) == value;
        });
        best.tokens_per_second.push_back(first == sorted.end() ? 0 : first->step.tokens_per_second);
    }
    return best;
}

}  // namespace

ShapeSearch search_shapes(const TrainingRun& run, const ShapeSearchOptions& options) {
    check(run);
    ShapeSearch found;
    found.points = points_of(options.axes);
    const std::vector<Model> shapes =
        shapes_within(run.model, options.axes, options.total, options.active);
    found.within = shapes.size();
    if (shapes.empty())
        throw input_error(
            "shapes: none of {:.0f} has {} parameters and {} active, allowed: wider windows or "
            "axes ({} has {:.4g} B and {:.4g} B)",
            found.points, to_text(options.total), to_text(options.active), run.model.name,
            static_cast<double>(parameters(run.model)) * 1e-9,
            static_cast<double>(multiplied_parameters(run.model)) * 1e-9);
    found.layouts = layouts_for(run, options);
    const ShapeClock clock(run, found.layouts);
    const ShapeTimer timer = [&](const Model& model) { return clock.fastest(model); };
    ShapeSearchOptions ranked = options;
    ranked.progress = half_of(options, 1);
    rank_shapes(shapes, run.model, timer, ranked, found);
    if (found.best.empty()) throw InputError(none_runs(run, found));
    if (std::optional<TrainingStep> step = timer(run.model))
        found.base = TimedShape{run.model, parameters(run.model), multiplied_parameters(run.model),
                                std::move(*step)};
    return found;
}

void rank_shapes(const std::vector<Model>& shapes, const Model& base, const ShapeTimer& timer,
                 const ShapeSearchOptions& options, ShapeSearch& found) {
    std::vector<TimedShape> sorted = timed(shapes, timer, options);
    std::stable_sort(sorted.begin(), sorted.end(), faster);
    found.timed = sorted.size();
    for (const ShapeField& field : shape_fields())
        if ((options.axes.*field.axis).size() > 1)
            found.by_axis.push_back(best_of(field, options.axes, sorted));
    for (std::size_t i = 0; i < sorted.size() && found.base_rank == 0; ++i)
        if (same_shape(sorted[i].model, base)) found.base_rank = i + 1;
    sorted.resize(std::min(sorted.size(), options.top));
    found.best = std::move(sorted);
}

}  // namespace moehub
