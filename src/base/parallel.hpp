/// Independent pieces of work over all cores, and work that ends early because nobody waits for it
/// any more.
#pragma once
#include <cstddef>
#include <functional>
#include <stdexcept>
#include <stop_token>

namespace moehub {

struct ParallelOptions {
    int threads = 0;  ///< 0: as many as there are cores
    /// Called after each piece with (pieces done, pieces in all), by one thread at a time. May be
    /// empty.
    std::function<void(std::size_t, std::size_t)> progress;
};

/// Calls work(0) … work(count − 1), each once, several at a time; pieces are started in this order.
/// After a failure no further piece starts, and of several failures the lowest index is thrown:
/// always the same one, as every piece before it had started. Ends as its thread does (EndsOn).
void run_parallel(std::size_t count, const std::function<void(std::size_t)>& work,
                  const ParallelOptions& options = {});

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
