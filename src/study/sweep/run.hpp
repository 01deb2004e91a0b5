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

struct RankOptions {
    SweepRunOptions run;
    std::string signature;                       ///< of program, study, inputs: all must agree
    std::chrono::milliseconds alive{1000};       ///< between signs of life
    std::chrono::milliseconds silence{10000};    ///< after which a rank counts as lost
    std::chrono::milliseconds patience{120000};  ///< with rank 0, which waits for its disk at times
};

struct RankReport {
    std::vector<SweepFailure> failures;
    std::vector<int> lost;       ///< ranks that fell silent
    std::vector<int> strangers;  ///< with another program, study or input; they simulated nothing
};

/// On rank 0, with the store. Throws as run_sweep does. end_ranks() comes after it, either way.
RankReport lead_ranks(Transport& transport, const Study& study, const SimulatePoint& simulate,
                      SweepStore& store, const RankOptions& options);

/// On all others, until told to end; false: ranks were lost. Throws std::runtime_error when rank 0
/// falls silent.
bool follow_rank(Transport& transport, const Study& study, const SimulatePoint& simulate,
                 const RankOptions& options);

/// Before a rank leads or follows, at least as often as `alive` says: it is still there.
void show_life(Transport& transport);

/// On rank 0, the last of its calls: tells all others to end, and whether some were lost.
void end_ranks(Transport& transport, bool lost);

// What ranks of a sweep tell one another, as bytes. All run the same program on the same kind of
// machine, so numbers travel as they are in memory.

struct SweepMessage {
    enum class Kind : char {
        ready = 'r',    ///< to rank 0: `text` is the signature, `number` how many points it takes
        alive = 'a',    ///< either way
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
/// Throws std::runtime_error for what to_bytes does not write.
SweepMessage from_bytes(std::string_view bytes);

}  // namespace moehub
