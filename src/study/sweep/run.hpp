/// Points of a sweep over all cores, saved as they come.
#pragma once
#include "study/sweep/store.hpp"

#include <functional>
#include <stop_token>

namespace moehub {

/// Simulates a point; any thread, several at a time. That its system cannot run it is an outcome;
/// what is thrown, such as for a file that cannot be read any more, is not, and is not saved.
using SimulatePoint = std::function<SweepOutcome(const SweepPoint&)>;

struct SweepRunOptions {
    int threads = 0;       ///< points simulated at a time; 0: as many as there are cores
    std::stop_token stop;  ///< asked to stop, no further point starts
    /// Called then, while nothing is being saved, before points underway have ended; it need not
    /// return.
    std::function<void()> stopped;
    /// Called after each point with (points saved, points of the shard), by one thread at a time.
    std::function<void(std::size_t, std::size_t)> progress;
};

/// Points for which something was thrown; they are not saved.
struct SweepFailure {
    std::size_t point = 0;
    std::string what;
};

/// Runs what is missing. Throws InputError when something cannot be saved; what was saved stays.
std::vector<SweepFailure> run_sweep(const Study& study, const SimulatePoint& simulate,
                                    SweepStore& store, const SweepRunOptions& options);

}  // namespace moehub
