/// Points of a sweep over all cores, saved as they come; and over several processes: the first
/// hands out points, saves what comes back, and simulates, too. A process that falls silent is
/// given up, and its points go to others.
#pragma once
#include "study/sweep/store.hpp"
#include "study/sweep/study.hpp"
#include "study/sweep/transport.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace moehub {

/// Simulates a point; any thread, several at a time. That its system cannot run it is an outcome;
/// what is thrown, such as for a file that cannot be read any more, is not, and is not saved.
using SimulatePoint = std::function<SweepOutcome(const SweepPoint&)>;

struct SweepRunOptions {
    int threads = 0;       ///< points simulated at a time; 0: as many as there are cores
    std::stop_token stop;  ///< asked to stop, no further point starts
    /// Called when asked to stop, while nothing is being saved, before points underway have ended;
    /// it need not return.
    std::function<void()> stopped;
    /// Called after each point with (points saved, points of the shard), by one thread at a time.
    std::function<void(std::size_t, std::size_t)> progress;
};

/// A point for which something was thrown; it is not saved.
struct SweepFailure {
    std::size_t point = 0;
    std::string what;
};

/// Runs missing points. Throws InputError when something cannot be saved; what was saved stays.
std::vector<SweepFailure> run_sweep(const Study& study, const SimulatePoint& simulate,
                                    SweepStore& store, const SweepRunOptions& options);

struct RankOptions {
    SweepRunOptions run;
    std::string signature;                       ///< program, study, inputs: ranks must agree
    std::chrono::milliseconds alive{1000};       ///< time between signs of life
    std::chrono::milliseconds silence{10000};    ///< time after which a silent rank counts as lost
    std::chrono::milliseconds patience{120000};  ///< silence of rank 0, which waits for its disk
};

struct RankReport {
    std::vector<SweepFailure> failures;
    std::vector<int> lost;       ///< ranks that fell silent
    std::vector<int> strangers;  ///< ranks with another program, study or input: left out
};

/// Leads on rank 0, with the store. Throws as run_sweep does; end_ranks() comes after it anyway.
RankReport lead_ranks(Transport& transport, const Study& study, const SimulatePoint& simulate,
                      SweepStore& store, const RankOptions& options);

/// Simulates on other ranks until told to end; false: ranks were lost. Throws std::runtime_error
/// when rank 0 falls silent.
bool follow_rank(Transport& transport, const Study& study, const SimulatePoint& simulate,
                 const RankOptions& options);

/// Shows that a rank is there: before it leads or follows, at least as often as `alive` says.
void show_life(Transport& transport);

/// Tells all other ranks to end, and whether some were lost: the last call of rank 0.
void end_ranks(Transport& transport, bool lost);

// What ranks of a sweep tell one another, as bytes. All run the same program on the same kind of
// machine, so numbers travel as they are in memory.

struct SweepMessage {
    enum class Kind : char {
        ready = 'r',    ///< to rank 0: `text` is the signature, `number` the points it takes
        alive = 'a',    ///< to and from rank 0: a sign of life
        result = 'o',   ///< to rank 0: outcome of point `number`
        failure = 'f',  ///< to rank 0: point `number` failed, `text` says how
        points = 'p',   ///< from rank 0: simulate `points`
        end = 'e',      ///< from rank 0; `number` is not 0 where ranks were lost
    };
    Kind kind = Kind::alive;
    std::uint64_t number = 0;
    std::string text = {};
    SweepOutcome outcome = {};
    std::vector<std::uint64_t> points = {};
};

std::string to_bytes(const SweepMessage& message);
/// The message of the bytes. Throws std::runtime_error for what to_bytes does not write.
SweepMessage from_bytes(std::string_view bytes);

}  // namespace moehub
