/// The assignment problem: rows to columns, one to one, for the largest total gain.
#pragma once
#include "place/counts.hpp"

#include <vector>

namespace moehub {

/// For every row its column, no column twice, such that the sum of gain(row, column) is the
/// largest. At most as many rows as columns; gains finite. O(rows² · columns); ties always resolve
/// the same way.
std::vector<int> best_assignment(const Matrix& gain);

}  // namespace moehub
