/// Points of a study, checked and simulated.
#pragma once
#include "study/sweep/run.hpp"

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace moehub {

/// What became of loading everything that a study names.
struct CheckedStudy {
    std::string inputs;                 ///< checksum of all that was loaded
    std::vector<std::string> refusals;  ///< by setting and system: why not; empty: it runs
    std::size_t refused = 0;            ///< points
};

struct CheckOptions {
    int threads = 0;
    std::function<void(std::size_t, std::size_t)> progress = {};
};

/// Loads every combination of settings and asks every system whether it can run it. Throws
/// InputError: a key or a value that is wrong, with its place; no point that can run.
CheckedStudy check_points(const Study& study, const CheckOptions& options);

/// Owns what points share. Loads anew: throws InputError for what cannot be loaded any more.
SimulatePoint point_simulator(const Study& study);

}  // namespace moehub
