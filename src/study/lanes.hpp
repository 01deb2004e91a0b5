/// Steps on two lanes, kernels and rows underway, by list scheduling: whenever a lane is free it
/// takes the first of its steps for which all before them are done, and runs it to its end.
#pragma once
#include "study/overlapped_passes.hpp"

#include <moehub/units.hpp>

#include <cstddef>
#include <vector>

namespace moehub {

enum class Lane { compute, communication };
/// Which of several steps is first; weights' gradients are last by each.
enum class LaneRule { first_come, forward_first, backward_first };

struct LaneStep {
    Lane lane = Lane::compute;
    KernelTime length;  ///< of rows underway the same twice
    int layer = 0;
    bool backward = false;
    bool weights = false;
    std::vector<std::size_t> next;
    int missing = 0;  ///< steps before it that are not done
    Ps ready = 0;     ///< when the last of them was
    Ps begin = 0;
    Ps end = 0;
};

/// The same steps with their times. Throws std::logic_error when they wait for one another.
std::vector<LaneStep> run_lanes(std::vector<LaneStep> steps, LaneRule rule);

}  // namespace moehub
