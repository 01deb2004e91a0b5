/// The best placement of every layer, where each pays for itself and with its neighbours.
#pragma once
#include "place/counts.hpp"
#include "place/exact/exact_placements.hpp"

#include <chrono>
#include <functional>
#include <stop_token>
#include <vector>

namespace moehub {

struct ChainTask {
    const LayerPlacements* placements = nullptr;
    /// What a layer pays, [layer][orbit]; infinite: not allowed. At least one is.
    std::vector<std::vector<double>> cost;

    /// What two neighbouring layers pay: the sum (or the largest) over the later layer's GPUs of
    /// prices(boundary, earlier layer's placement)(gpu, number of the GPU's set). Must be the same
    /// when both layers' names change alike (LayerPlacements). Called by several threads at once.
    /// Empty: nothing.
    std::function<void(int boundary, int placement, Matrix& prices)> prices;
    bool largest = false;

    int threads = 1;  ///< same result
    std::stop_token stop = {};
    std::chrono::steady_clock::time_point end = std::chrono::steady_clock::time_point::max();
    std::function<void(double)> progress = {};  ///< share done
};

struct ChainResult {
    std::vector<std::vector<ExpertSet>> sets;  ///< [layer][gpu]
    double value = 0;
    bool cut_short = false;  ///< by the clock or stop: a good one, not the best
};
ChainResult best_chain(const ChainTask& task);

}  // namespace moehub
