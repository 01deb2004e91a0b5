#include "study/sweep/run.hpp"

#include "base/parallel.hpp"

#include <algorithm>
#include <mutex>

namespace moehub {

std::vector<std::size_t> missing_points(const SweepStore& store, const SweepShard& shard) {
    std::vector<std::size_t> missing;
    for (std::size_t i = 0; i < store.outcomes().size(); ++i)
        if (shard.has(i) && !store.outcomes()[i]) missing.push_back(i);
    return missing;
}

std::vector<SweepFailure> run_sweep(const Study& study, const SimulatePoint& simulate,
                                    SweepStore& store, const SweepRunOptions& options) {
    const std::vector<std::size_t> missing = missing_points(store, options.shard);
    const std::size_t total = store.saved() + missing.size();
    std::mutex mutex;
    std::vector<SweepFailure> failures;
    const std::stop_callback stopped(options.stop, [&] {
        const std::lock_guard lock(mutex);
        if (options.stopped) options.stopped();
    });
    const auto run = [&](std::size_t i) {
        if (options.stop.stop_requested()) return;
        const SweepPoint point = point_of(study, missing[i]);
        SweepOutcome outcome;
        try {
            outcome = simulate(point);
        } catch (const std::exception& error) {
            const std::lock_guard lock(mutex);
            failures.push_back({point.number, error.what()});
            return;
        }
        const std::lock_guard lock(mutex);
        store.save(point, std::move(outcome));
        if (options.progress) options.progress(store.saved(), total);
    };
    run_parallel(missing.size(), run, {options.threads, {}});
    std::sort(failures.begin(), failures.end(),
              [](const auto& a, const auto& b) { return a.point < b.point; });
    return failures;
}

}  // namespace moehub
