/// A sweep over several processes: the first hands out points, saves what comes back, and
/// simulates, too. A process that falls silent is given up, and its points go to others.
#pragma once
#include "study/sweep/run.hpp"
#include "study/sweep/transport.hpp"

#include <chrono>

namespace moehub {

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

}  // namespace moehub
