/// Orders of experts in which a matrix of pairs shows its blocks.
#pragma once
#include <vector>

namespace moehub {

/// Experts such that those chosen together are neighbours, from a symmetric matrix, flat. Starts
/// with the strongest pair and goes on with whoever is nearest to the last few.
std::vector<int> chained(const std::vector<double>& symmetric, int experts);

/// Columns such that the strong cells lie along the diagonal, rows in the order given.
std::vector<int> along_diagonal(const std::vector<double>& matrix, const std::vector<int>& rows);

/// The matrix with rows and columns in these orders.
std::vector<double> reordered(const std::vector<double>& matrix, const std::vector<int>& rows,
                              const std::vector<int>& columns);

}  // namespace moehub
