/// The best placement of every layer: all placements of one, what each costs by itself, and the
/// best chain of them.
#pragma once
#include "place/counts.hpp"

#include <moehub/place.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <stop_token>
#include <vector>

namespace moehub {

/// A set of experts, bit by bit. Within the limit on placements no layer on two GPUs or more has
/// above 16 experts.
using ExpertSet = std::uint16_t;

/// How many placements there are; past a billion some number above that.
double count_placements(int experts, int gpus);

/// All placements of a layer, numbered from 0. Two are of one orbit when they differ only by names:
/// of nodes, and of GPUs within a node. Then all that is paid within a layer is the same for both.
class LayerPlacements {
  public:
    struct Shape {
        int experts = 1;  ///< number of experts, at most 16, a multiple of gpus
        int gpus = 1;
        int nodes = 1;
        bool named = false;  ///< every placement is an orbit of its own
    };
    explicit LayerPlacements(const Shape& shape);

    const Shape& shape() const { return shape_; }
    int gpus_per_node() const { return shape_.gpus / shape_.nodes; }
    int size() const { return static_cast<int>(orbit_.size()); }
    int orbits() const { return static_cast<int>(first_.size()); }
    int orbit(int placement) const { return orbit_[at(placement)]; }
    /// The first placement of an orbit.
    int first(int orbit) const { return first_[at(orbit)]; }

    /// Sets that a GPU can hold, and the number of each GPU's set in a placement.
    const std::vector<ExpertSet>& sets() const { return sets_; }
    std::span<const std::uint16_t> numbers(int placement) const {
        const auto gpus = at(shape_.gpus);
        return {numbers_.data() + at(placement) * gpus, gpus};
    }
    std::vector<ExpertSet> sets_of(int placement) const {
        std::vector<ExpertSet> result;
        for (const std::uint16_t number : numbers(placement)) result.push_back(sets_[number]);
        return result;
    }

  private:
    void fill(int gpu, unsigned left, std::vector<std::uint16_t>& numbers);
    std::vector<std::uint16_t> canonical(std::span<const std::uint16_t> numbers) const;
    void find_orbits();

    Shape shape_;
    std::vector<ExpertSet> sets_;
    std::vector<std::uint16_t> numbers_;  ///< number of the set, [placement][gpu]
    std::vector<int> orbit_;
    std::vector<int> first_;
};

struct CostTask {
    const PlaceInput* input = nullptr;
    const PlaceOptions* options = nullptr;
    Objective objective;
    const LayerPlacements* placements = nullptr;
};

/// Choices that a profile has recorded.
struct ChoiceTotals {
    double visits = 0;       ///< number of (token, layer) pairs with an expert
    double transitions = 0;  ///< number of (expert, expert of the next layer) pairs of a token
};
ChoiceTotals choice_totals(const Profile& profile);

struct LayerCosts {
    std::vector<std::vector<double>> cost;  ///< cost, [layer][orbit]; infinite: above the load cap
    /// The least cap that a placement keeps where none keeps the given one, else 0; by layer.
    std::vector<double> raised_cap;
};
/// All parts of the objective that a layer pays by itself.
LayerCosts layer_costs(const CostTask& task, const std::vector<ChoiceTotals>& totals);

struct ChainTask {
    const LayerPlacements* placements = nullptr;
    /// What a layer pays, [layer][orbit]; infinite: not allowed. At least one is allowed.
    std::vector<std::vector<double>> cost;

    /// What two neighbouring layers pay: the sum (or the largest) over the later layer's GPUs of
    /// prices(boundary, earlier layer's placement)(gpu, number of the GPU's set). Must be the same
    /// when both layers' names change alike (LayerPlacements). Called by several threads at once.
    /// Empty: nothing.
    std::function<void(int boundary, int placement, Matrix& prices)> prices;
    bool largest = false;

    int threads = 1;  ///< number of threads; any gives the same result
    std::stop_token stop = {};
    std::chrono::steady_clock::time_point end = std::chrono::steady_clock::time_point::max();
    std::function<void(double)> progress = {};  ///< called with the share done
};

struct ChainResult {
    std::vector<std::vector<ExpertSet>> sets;  ///< set of experts, [layer][gpu]
    double value = 0;
    bool cut_short = false;  ///< the clock or stop ended it: a good chain, not the best
};
ChainResult best_chain(const ChainTask& task);

}  // namespace moehub
