#include "plan/search/families.hpp"
#include "plan/search/least_memory.hpp"
#include "plan/search/record.hpp"

#include <moehub/error.hpp>

#include <algorithm>
#include <optional>

#include <fmt/format.h>

namespace moehub {
namespace {

/// The smallest of each family by its bound, smallest first, as far as that fits.
std::vector<SizedLayout> small_layouts(const TrainingRun& run, const PlanOptions& options) {
    const auto capacity = static_cast<double>(run.machine.gpu.hbm_capacity);
    const std::vector<Saving> all = savings(run, options.fixed);
    std::vector<SizedLayout> found;
    for (ParallelLayout layout : layout_families(run, options)) {
        std::optional<SizedLayout> smallest;
        for (const Saving& saving : all) {
            layout.recompute = saving.recompute;
            layout.offload = saving.offload;
            const double memory = least_memory(run, layout);
            if (memory > capacity || (smallest && memory >= smallest->memory)) continue;
            if (why_not(run, layout).empty()) smallest = SizedLayout{layout, memory};
        }
        if (smallest) found.push_back(*smallest);
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const auto& a, const auto& b) { return a.memory < b.memory; });
    return found;
}

/// The first that fits and that its system can run.
std::optional<ParallelLayout> fitting(const TrainingRun& run, const PlanOptions& options) {
    const std::vector<SizedLayout> layouts = small_layouts(run, options);
    if (layouts.empty()) return {};
    TrainingClock clock(run);
    for (const SizedLayout& one : layouts) {
        try {
            if (clock.step(one.layout).fits) return one.layout;
        } catch (const InputError&) {
            // Another may run.
        }
    }
    return {};
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
    if (options.fixed != PartialLayout{}) {
        PlanOptions free = options;
        free.fixed = {};
        if (const auto layout = fitting(run, free))
            return fmt::format("without {} it would: {}", to_text(options.fixed), to_text(*layout));
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
