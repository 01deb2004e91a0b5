/// DeepSeek's EPLB: copies of the experts that are asked for most, packed evenly.
#pragma once
#include "place/counts.hpp"

#include <span>
#include <vector>

namespace moehub {

struct EplbSizes {
    int slots = 0;   ///< slots of a layer; at least one per expert, a multiple of gpus
    int groups = 1;  ///< groups of experts; a divisor of the experts
    int nodes = 1;   ///< a divisor of gpus; where groups is no multiple of it, nodes are ignored
    int gpus = 1;
};

struct EplbResult {
    std::vector<std::vector<int>> expert_of;  ///< [layer][slot], slots GPU after GPU
    std::vector<std::vector<int>> copies;     ///< [layer][expert]
};

/// Places by EPLB; `weights` is [layer × expert], finite, 0 or more. Gives the published program's
/// slots, ties included. Two copies of an expert may meet on one GPU.
EplbResult eplb(const Matrix& weights, const EplbSizes& sizes);

/// Copies of each expert: one, and a further one for the expert with the most weight per copy
/// until there are `slots`. Of equals the first.
std::vector<int> copies_of(std::span<const double> weights, int slots);

/// Packs evenly by longest processing time first, equal counts: items by weight, each to the
/// lightest pack with room. [pack] → items in the order they came. Items are a multiple of packs;
/// as many items as packs stay in order.
std::vector<std::vector<int>> pack_evenly(std::span<const double> weights, int packs);

}  // namespace moehub
