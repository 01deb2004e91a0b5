/// Independent pieces of work over all cores.
#pragma once
#include <cstddef>
#include <functional>

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

}  // namespace moehub
