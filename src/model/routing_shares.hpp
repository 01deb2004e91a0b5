/// How rows are shared among experts: the numbers behind a RoutingSpec.
#pragma once
#include "base/rng.hpp"

#include <moehub/routing.hpp>

#include <vector>

namespace moehub {

/// The share of all rows that each expert of a layer is to get: 0 to 1/top_k each, for no token
/// goes to an expert twice; 1 in sum. `normal` has the given standard deviation exactly, unless it
/// asks for negative shares or ones above 1/top_k, which are cut.
std::vector<double> expert_shares(const RoutingSpec& spec, int experts, int top_k, Rng& rng);

/// `shares` (none negative) scaled to the sum 1 with none above `cap`: what is cut off goes to the
/// others, in proportion to theirs, or evenly where those are all 0. cap · size at least 1.
std::vector<double> capped(std::vector<double> shares, double cap);

/// Weights with which drawing `count` of them one after the other, without putting back, includes
/// each with probability count · shares[i], nearly. Infinite where that is 1. The shares' sum is 1,
/// none above 1/count.
std::vector<double> draw_weights(const std::vector<double>& shares, double count);

/// Weights of draw_weights(), made exact where they are few and the approximation is worst; `count`
/// is whole.
std::vector<double> exact_draw_weights(const std::vector<double>& shares, int count);

}  // namespace moehub
