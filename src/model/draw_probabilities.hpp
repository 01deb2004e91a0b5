/// How likely each of several things is to be drawn, when a few are drawn without putting back.
#pragma once
#include <vector>

namespace moehub {

/// The probability that each is among `count` things drawn one after the other, each time with
/// probability proportional to the weights of those left. Weights are finite, 0 or more, and such
/// that -log(1 - p) is near the weight of one with probability p; at least `count` are above 0.
/// Takes a time proportional to size · count.
std::vector<double> draw_probabilities(const std::vector<double>& weights, int count);

}  // namespace moehub
