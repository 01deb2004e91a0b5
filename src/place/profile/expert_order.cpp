#include "place/profile/expert_order.hpp"

#include <algorithm>
#include <numeric>

namespace moehub {
namespace {

constexpr std::size_t kLastFew = 4;  ///< one alone leads astray, many never leave a block

std::size_t index(int row, int column, std::size_t experts) {
    return static_cast<std::size_t>(row) * experts + static_cast<std::size_t>(column);
}

int nearest_to_last(const std::vector<double>& matrix, const std::vector<int>& order,
                    const std::vector<bool>& ordered) {
    const std::size_t experts = ordered.size();
    const std::size_t from = order.size() - std::min(order.size(), kLastFew);
    int best = -1;
    double most = 0;
    for (std::size_t expert = 0; expert < experts; ++expert) {
        if (ordered[expert]) continue;
        double near = 0;
        for (std::size_t at = from; at < order.size(); ++at)
            near += matrix[index(order[at], static_cast<int>(expert), experts)];
        if (best >= 0 && near <= most) continue;
        best = static_cast<int>(expert);
        most = near;
    }
    return best;
}

}  // namespace

std::vector<int> chained(const std::vector<double>& symmetric, int experts) {
    std::vector<int> order;
    if (experts < 1 || symmetric.empty()) return order;
    std::vector<bool> ordered(static_cast<std::size_t>(experts), false);
    const auto strongest = std::max_element(symmetric.begin(), symmetric.end());
    int next = static_cast<int>((strongest - symmetric.begin()) / experts);
    while (next >= 0) {
        order.push_back(next);
        ordered[static_cast<std::size_t>(next)] = true;
        next = nearest_to_last(symmetric, order, ordered);
    }
    return order;
}

std::vector<int> along_diagonal(const std::vector<double>& matrix, const std::vector<int>& rows) {
    const std::size_t experts = rows.size();
    // Centre of gravity of each column, squares as weights: what is weak must not pull.
    std::vector<double> centre(experts, 0.0);
    for (std::size_t column = 0; column < experts; ++column) {
        double weights = 0;
        for (std::size_t at = 0; at < experts; ++at) {
            const double value = matrix[index(rows[at], static_cast<int>(column), experts)];
            centre[column] += static_cast<double>(at) * value * value;
            weights += value * value;
        }
        centre[column] = weights > 0 ? centre[column] / weights : static_cast<double>(experts);
    }
    std::vector<int> order(experts);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&centre](int a, int b) {
        return centre[static_cast<std::size_t>(a)] < centre[static_cast<std::size_t>(b)];
    });
    return order;
}

std::vector<double> reordered(const std::vector<double>& matrix, const std::vector<int>& rows,
                              const std::vector<int>& columns) {
    std::vector<double> out;
    out.reserve(matrix.size());
    for (const int row : rows)
        for (const int column : columns) out.push_back(matrix[index(row, column, columns.size())]);
    return out;
}

}  // namespace moehub
