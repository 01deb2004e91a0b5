/// Work that ends early because nobody waits for it any more.
#pragma once
#include <stdexcept>
#include <stop_token>

namespace moehub {

/// Work that ended because its asker wanted it to.
class Ended : public std::runtime_error {
  public:
    Ended() : std::runtime_error("ended") {}
};

/// While it lives, what its thread does, and the threads that run_parallel() starts from there, end
/// soon after the token asks: simulations and pieces of work throw Ended. One at a time in a
/// thread, which is all that it is known to.
class EndsOn {
  public:
    /// The token outlives it.
    explicit EndsOn(const std::stop_token& stop);
    ~EndsOn();
    EndsOn(const EndsOn&) = delete;
    EndsOn& operator=(const EndsOn&) = delete;
};

/// What ends this thread's work; one that never asks where nothing does.
std::stop_token current_end();
/// Throws Ended where this thread's work is to end.
void end_if_asked();

}  // namespace moehub
