/// Planning: which parallel layout trains a model fastest on a machine, and which shape of a model
/// trains fastest of those with a given number of parameters.
///
///     PlanOptions options;
///     options.fixed.pp = 8;
///     const Plan plan = plan_training(run, options);
///     for (const TrainingStep& step : plan.best) fmt::print("{}\n", to_text(step.layout));
#pragma once
#include <moehub/training.hpp>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace moehub {

struct PlanOptions {
    PartialLayout fixed = {};  ///< members that are not searched
    /// Systems of MoE layers to search over; empty: the trainer's dispatcher alone.
    std::vector<std::string> systems = {};
    std::size_t top = 10;  ///< layouts to return, re-simulated exactly
    bool exact = true;     ///< simulate the best layouts as they are; false: by tables alone
    bool prune = true;     ///< false: every layout is timed, whatever its bound
    int threads = 0;       ///< layouts timed at a time; 0: as many as there are cores
    /// Called now and then with how much is done, of how much, by one thread at a time. May be
    /// empty.
    std::function<void(std::size_t, std::size_t)> progress = {};
};

/// What a search has found. Of layouts that differ in recomputation and offload alone it lists the
/// fastest that fits, except on the front.
struct Plan {
    std::vector<TrainingStep> best;     ///< fastest layouts first; all of them fit
    std::vector<TrainingStep> systems;  ///< each system's fastest that fits, in the order asked for
    std::vector<TrainingStep> front;    ///< no other is faster with as little memory; fastest first
    std::vector<TrainingStep> nearest;  ///< when nothing fits: least memory first
    std::size_t layouts = 0;            ///< layouts that the run allows
    std::size_t timed = 0;              ///< layouts that were timed
    std::size_t too_large = 0;          ///< layouts that do not fit, as far as was looked
    std::size_t refused = 0;            ///< further layouts that their system cannot run
    std::string refusal;                ///< why the first refused layout cannot run
};

/// Plans a run, the same on any number of threads. Throws InputError as check(run) does, and when
/// what is fixed leaves no layout.
Plan plan_training(const TrainingRun& run, const PlanOptions& options = {});
/// Plans the clock's run, with what the clock has simulated already.
Plan plan_training(const TrainingClock& clock, const PlanOptions& options = {});

/// When nothing fits, a few words on what would: less that is fixed, more GPUs of `whole` (the
/// machine that the run's is part of), or a GPU with more memory.
std::string what_would_fit(const TrainingRun& run, const PlanOptions& options,
                           const Machine& whole);

/// How far two orders agree: Spearman's rank correlation, ties share their rank. Nothing to compare
/// (fewer than two, or all alike): 0.
double rank_correlation(const std::vector<double>& one, const std::vector<double>& other);

}  // namespace moehub
