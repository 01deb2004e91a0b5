#include "study/sweep/run.hpp"

#include "base/parallel.hpp"

#include <algorithm>
#include <mutex>
#include <thread>
#include <tuple>

namespace moehub {

namespace {

constexpr std::size_t kMostAtOnce = 16;  ///< settings that are worked on side by side

/// Systems of one setting share what is loaded: side by side stand different settings, so that no
/// two threads load the same, and a setting's next system comes while it is at hand.
void order_for_threads(std::vector<std::size_t>& points, std::size_t systems, int threads) {
    const std::size_t cores = std::max(1u, std::thread::hardware_concurrency());
    const std::size_t block =
        std::min(kMostAtOnce, threads > 0 ? static_cast<std::size_t>(threads) : cores);
    std::stable_sort(points.begin(), points.end(), [&](std::size_t a, std::size_t b) {
        const auto key = [&](std::size_t point) {
            const std::size_t setting = point / systems;
            return std::tuple(setting / block, point % systems, setting);
        };
        return key(a) < key(b);
    });
}

}  // namespace

std::vector<SweepFailure> run_sweep(const Study& study, const SimulatePoint& simulate,
                                    SweepStore& store, const SweepRunOptions& options) {
    std::vector<std::size_t> missing = store.missing();
    order_for_threads(missing, study.systems.size(), options.threads);
    const std::size_t total = store.points();
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
        } catch (const Ended&) {
            return;  // it is missing as if it had not begun
        } catch (const std::exception& error) {
            const std::lock_guard lock(mutex);
            failures.push_back({point.number, error.what()});
            return;
        }
        const std::lock_guard lock(mutex);
        store.save(point, outcome);
        if (options.progress) options.progress(store.saved(), total);
    };
    run_parallel(missing.size(), run, {options.threads, {}});
    std::sort(failures.begin(), failures.end(),
              [](const auto& a, const auto& b) { return a.point < b.point; });
    return failures;
}

}  // namespace moehub
