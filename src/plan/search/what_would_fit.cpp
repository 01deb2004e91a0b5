#include "plan/search/families.hpp"
#include "plan/search/least_memory.hpp"

#include <moehub/error.hpp>

#include <optional>

#include <fmt/format.h>

namespace moehub {
namespace {

/// The layout with the smallest bound, none where none is allowed.
std::optional<ParallelLayout> smallest_layout(const TrainingRun& run, const PlanOptions& options) {
    std::optional<ParallelLayout> smallest;
    double least = 0;
    const std::vector<Saving> all = savings(run, fixed_keys(options));
    for (ParallelLayout layout : layout_families(run, options))
        for (const Saving& saving : all) {
            layout.recompute = saving.recompute;
            layout.offload = saving.offload;
            const double memory = least_memory(run, layout);
            if (smallest && memory >= least) continue;
            if (!why_not(run, layout).empty()) continue;
            smallest = layout;
            least = memory;
        }
    return smallest;
}

/// The smallest layout, where it fits.
std::optional<ParallelLayout> fitting(const TrainingRun& run, const PlanOptions& options) {
    const std::optional<ParallelLayout> smallest = smallest_layout(run, options);
    if (!smallest) return {};
    const auto capacity = static_cast<double>(run.machine.gpu.hbm_capacity);
    if (least_memory(run, *smallest) > capacity) return {};
    TrainingClock clock(run);
    return clock.step(*smallest).fits ? smallest : std::nullopt;
}

std::optional<TrainingRun> with_more(const TrainingRun& run, const Machine& whole, int gpus) {
    try {
        TrainingRun larger = run;
        larger.machine = training_machine(whole, gpus);
        return larger;
    } catch (const InputError&) {
        return {};
    }
}

}  // namespace

std::string what_would_fit(const TrainingRun& run, const PlanOptions& options,
                           const Machine& whole) {
    if (!options.fixed.empty()) {
        PlanOptions free = options;
        free.fixed.clear();
        if (const auto layout = fitting(run, free))
            return fmt::format("without {} it would: {}", options.fixed, to_text(*layout));
    }
    const int most = whole.max_gpus > 0 ? whole.max_gpus : whole.gpus();
    for (int gpus = 2 * run.gpus(); gpus <= most; gpus *= 2) {
        const std::optional<TrainingRun> larger = with_more(run, whole, gpus);
        if (!larger) continue;
        if (const auto layout = fitting(*larger, options))
            return fmt::format("{} GPUs would do: {}", gpus, to_text(*layout));
    }
    return fmt::format("{} GPUs of this machine would not do either", most);
}

}  // namespace moehub
