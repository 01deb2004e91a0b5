/// The steady state of a pipeline: when do its rounds repeat?
///
/// A state is the times that the next round starts from: when stages are free, when messages
/// leave. Times only pass through max and +, so a state that equals an earlier one but for the same
/// shift everywhere repeats for ever: after `lag` more rounds all times are later by that shift.
/// Uneven pipelines with long sends go round in more than one round, hence lags above 1.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

namespace moehub {

class SteadyState {
  public:
    /// Of states of `size` times; at most `limit` rounds are looked at, for lags up to `lags`.
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
    std::vector<double> states_;  ///< one after the other
};

}  // namespace moehub
