// Families are looked at in rounds: what a round may leave out is known from those before it, so
// that the same layouts are timed on any number of threads. Promising ones come first: the sooner
// good layouts are known, the less is left to time.
#include "base/parallel.hpp"
#include "plan/search/search.hpp"

#include <moehub/error.hpp>

#include <algorithm>
#include <span>
#include <tuple>

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr std::size_t kFirstRound = 64;
constexpr std::size_t kLargestRound = 4096;
constexpr std::size_t kTogether = 16;  ///< families that one thread takes at a time

/// Rather small for what tends to be fast: a short pipeline fill, few GPUs that share a layer.
/// Only an order.
double promise(const TrainingRun& run, const ParallelLayout& layout) {
    const auto count =
        static_cast<double>(std::max<std::int64_t>(1, micro_batches_of(run, layout)));
    const double fill = (layout.pp - 1) / (count * layout.vpp);
    const double shared = layout.tp * layout.cp + layout.etp;
    return fill + 0.05 * shared + (layout.sharding == Sharding::fsdp ? 1 : 0);
}

std::vector<ParallelLayout> promising_first(const TrainingRun& run, const PlanOptions& options) {
    std::vector<ParallelLayout> families = layout_families(run, options);
    std::vector<std::pair<double, std::size_t>> order;
    for (std::size_t i = 0; i < families.size(); ++i)
        order.emplace_back(promise(run, families[i]), i);
    std::sort(order.begin(), order.end());
    std::vector<ParallelLayout> sorted;
    sorted.reserve(families.size());
    for (const auto& [_, index] : order) sorted.push_back(std::move(families[index]));
    return sorted;
}

using PiecesDone = std::function<void(std::size_t, std::size_t)>;

class Search {
  public:
    Search(const TrainingClock& clock, const PlanOptions& options)
        : clock_(clock),
          clocks_(clock),
          options_(options),
          savings_(savings(clock.run(), options.fixed)),
          record_(2 * options.top) {}

    Plan run() {
        const std::vector<ParallelLayout> families = promising_first(clock_.run(), options_);
        simulate_exchanges(families);
        std::size_t size = kFirstRound;
        for (std::size_t begin = 0; begin < families.size(); begin += size) {
            if (begin > 0) size = std::min(2 * size, kLargestRound);
            const std::size_t count = std::min(size, families.size() - begin);
            look_at({families.data() + begin, count}, [&](std::size_t done, std::size_t pieces) {
                report(begin + count * done / pieces, families.size(), Part::layouts);
            });
        }
        if (plan_.layouts == 0) throw InputError(reason_for_none());
        PlanOptions options = options_;
        options.progress = [this](std::size_t done, std::size_t all) {
            report(done, all, Part::finalists);
        };
        add_finalists(clocks_, options, record_, plan_);
        return std::move(plan_);
    }

  private:
    /// Half of the time goes to exchanges, half to layouts, more or less, and the end of it to the
    /// finalists.
    enum class Part { exchanges, layouts, finalists };
    void report(std::size_t done, std::size_t all, Part part) const {
        constexpr std::size_t kBounds[] = {0, 475, 950, 1000};
        const auto at = static_cast<std::size_t>(part);
        const std::size_t before = kBounds[at];
        if (options_.progress)
            options_.progress(before + (kBounds[at + 1] - before) * done / all, 1000);
    }

    /// Every exchange of rows once, the largest first: families would ask for the same one at the
    /// same time, and wait for it.
    void simulate_exchanges(const std::vector<ParallelLayout>& families) {
        std::map<std::tuple<int, int, std::string>, ParallelLayout> exchanges;
        for (const ParallelLayout& one : families) {
            const std::tuple key(-one.ep * one.etp, one.etp, one.system);
            if (!exchanges.contains(key) && why_not(clock_.run(), one).empty())
                exchanges.emplace(key, one);
        }
        std::vector<ParallelLayout> layouts;
        for (const auto& [_, layout] : exchanges) layouts.push_back(layout);
        run_parallel(
            layouts.size(),
            [&](std::size_t i) {
                clocks_.with_clock([&](TrainingClock& clock) {
                    try {
                        clock.least_seconds(layouts[i]);
                    } catch (const InputError&) {  // layouts that ask for it are refused
                    }
                });
            },
            {.threads = options_.threads, .progress = [&](std::size_t done, std::size_t all) {
                 report(done, all, Part::exchanges);
             }});
    }

    void look_at(std::span<const ParallelLayout> families, const PiecesDone& report_done) {
        std::vector<FamilyResult> results(families.size());
        const FamilySearch search{savings_, record_, options_.prune};
        const std::size_t pieces = (families.size() + kTogether - 1) / kTogether;
        run_parallel(pieces,
                     [&](std::size_t piece) {
                         const std::size_t end = std::min(families.size(), (piece + 1) * kTogether);
                         clocks_.with_clock([&](TrainingClock& clock) {
                             for (std::size_t i = piece * kTogether; i < end; ++i)
                                 results[i] = search.look_at(families[i], clock);
                         });
                     },
                     {.threads = options_.threads, .progress = report_done});
        for (const FamilyResult& result : results) take(result);
    }

    void take(const FamilyResult& result) {
        if (!result.refused.empty() && refused_.empty()) refused_ = result.refused;
        if (!result.cannot_run.empty()) {
            if (plan_.refused == 0) plan_.refusal = result.cannot_run;
            plan_.refused += result.layouts;
            return;
        }
        plan_.layouts += result.layouts;
        plan_.timed += result.timed;
        plan_.too_large += result.too_large;
        const bool nothing_fits = record_.fastest.empty() && result.steps.empty();
        if (result.smallest && nothing_fits) record_.smallest.push_back(*result.smallest);
        if (result.steps.empty()) return;
        record_.smallest.clear();
        const TrainingStep& fastest = result.steps.front();
        record_.fastest_of(fastest.layout.system).add(fastest);
        for (const TrainingStep& step : result.steps) record_.front.add(step);
    }

    /// Why there is none: what is fixed by itself, or the first layout that it left.
    std::string reason_for_none() const {
        if (plan_.refused > 0) return plan_.refusal;
        const std::string alone = why_not(clock_.run(), completed(options_.fixed));
        if (!alone.empty()) return alone;
        if (!refused_.empty()) return refused_;
        const std::string fixed = to_text(options_.fixed);
        return fmt::format("no parallel layout of {} GPUs has {}", clock_.run().gpus(),
                           fixed.empty() ? "this model and batch" : fixed);
    }

    const TrainingClock& clock_;
    ClockPool clocks_;
    const PlanOptions& options_;
    std::vector<Saving> savings_;
    SearchRecord record_;
    Plan plan_;
    std::string refused_;
};

/// The smallest layout of each family by its bound, smallest first, where it fits.
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

/// The first layout that fits and that its system can run.
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

Plan plan_training(const TrainingRun& run, const PlanOptions& options) {
    return plan_training(TrainingClock(run), options);
}

Plan plan_training(const TrainingClock& clock, const PlanOptions& options) {
    return Search(clock, options).run();
}

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
