/// What every placement of a layer costs by itself.
#pragma once
#include "place/exact/exact_placements.hpp"

#include <moehub/place.hpp>

#include <vector>

namespace moehub {

struct CostTask {
    const PlaceInput* input = nullptr;
    const PlaceOptions* options = nullptr;
    Objective objective;
    const LayerPlacements* placements = nullptr;
};

/// Choices that a profile has recorded.
struct ChoiceTotals {
    double visits = 0;       ///< (token, layer) pairs with an expert
    double transitions = 0;  ///< (expert, expert of the next layer) pairs of a token
};
ChoiceTotals choice_totals(const Profile& profile);

struct LayerCosts {
    std::vector<std::vector<double>> cost;  ///< [layer][orbit]; infinite: above the load cap
    /// Where no placement keeps the cap: the least that one reaches, which is then the cap. Else 0.
    std::vector<double> raised_cap;  ///< [layer]
};
/// All parts of the objective that a layer pays by itself.
LayerCosts layer_costs(const CostTask& task, const std::vector<ChoiceTotals>& totals);

}  // namespace moehub
