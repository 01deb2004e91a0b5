/// Colours of maps on white: from near white over orange and red to dark violet. Lightness falls
/// evenly, so more is darker in print and to those who see few colours.
#pragma once
#include <string>
#include <vector>

namespace moehub {

constexpr int kColourLevels = 40;

/// 0 to kColourLevels − 1, for a value between 0 and `cap`; beyond it the last.
int colour_level(double value, double cap);
/// "#rrggbb".
std::string colour_of(int level);

/// A round number that all but the largest half percent are below, at least `least`: a few
/// outliers must not make all others pale.
double colour_cap(std::vector<double> values, double least);

}  // namespace moehub
