/// The two kinds of schedule behind run_pipeline, and what they share.
#pragma once
#include "plan/pipeline/pipeline.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

namespace moehub {

/// Seconds that a forward of this piece and a backward of another micro-batch save as a pair. What
/// rounding leaves of forward + backward is no saving: it would choose another order of tasks.
inline double pair_saving(const PieceTime& piece) {
    const double apart = piece.forward + piece.backward;
    const double saving = piece.pair > 0 ? apart - piece.pair : 0;
    return std::abs(saving) > 1e-9 * apart ? saving : 0;
}

/// A forward of one piece beside a backward of another: each brings half of its own saving. Where
/// pieces differ much, the longer of the two sets a limit, unless it is longer than pairs of its
/// own.
inline double pair_seconds(const PieceTime& forward, const PieceTime& backward) {
    const double saving = (pair_saving(forward) + pair_saving(backward)) / 2;
    const double longer = std::max(forward.forward, backward.backward);
    const double own = std::max(forward.forward + forward.backward - pair_saving(forward),
                                backward.forward + backward.backward - pair_saving(backward));
    return std::max(forward.forward + backward.backward - saving, std::min(longer, own));
}

/// Runs plain and interleaved 1F1B. The input is one that run_pipeline accepts.
PipelineResult run_one_f_one_b(const PipelineInput& input, bool keep_tasks);

/// Runs DualPipe. The input is one that run_pipeline accepts.
PipelineResult run_dualpipe(const PipelineInput& input, bool keep_tasks);

/// The steady state of a pipeline: when do its rounds repeat?
///
/// A state is the times that the next round starts from: when stages are free, when messages
/// leave. Times only pass through max and +, so a state that equals an earlier one but for the same
/// shift everywhere repeats for ever: after `lag` more rounds all times are later by that shift.
/// Uneven pipelines with long sends go round in more than one round, hence lags above 1.

class SteadyState {
  public:
    /// States have `size` times; at most `limit` rounds are looked at, for lags up to `lags`.
    SteadyState(std::size_t size, std::size_t limit, std::size_t lags);

    /// Takes the state after one more round. True: it repeats the one `lag()` rounds before.
    bool add(std::span<const double> state);

    bool full() const { return rounds_ == limit_; }
    std::size_t lag() const { return lag_; }

    /// Moves the last state taken `rounds` rounds on. Exact where it repeats and `rounds` is a
    /// multiple of lag(); else each time moves on at the rate that it had over the second half of
    /// what was looked at: a slow stage that has not yet held up the others goes its own way, and
    /// the rounds that are run afterwards let it.
    void skip(std::span<double> state, double rounds) const;

  private:
    bool repeats(std::size_t lag);

    std::size_t size_;
    std::size_t limit_;
    std::size_t lags_;
    std::size_t rounds_ = 0;
    std::size_t lag_ = 0;         ///< 0: no repetition found
    std::vector<double> states_;  ///< states one after the other
};

}  // namespace moehub
