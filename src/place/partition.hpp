/// Experts of one layer in parts of equal size: mending what a graph partitioner leaves unequal.
#pragma once
#include "place/counts.hpp"

#include <span>
#include <vector>

namespace moehub {

/// Experts by part, with what ties them together.
struct Partition {
    int parts = 1;
    std::vector<int> part_of;  ///< part of each expert

    std::vector<int> sizes() const {
        std::vector<int> size(at(parts), 0);
        for (const int part : part_of) ++size[at(part)];
        return size;
    }
    std::vector<double> loads(std::span<const double> load) const;
    /// The sum of the ties between experts of different parts.
    double cut(const Matrix& ties) const;
};

/// Moves experts from parts with too many to parts with too few, each time the one that raises the
/// cut least, until all are equal. Experts are a multiple of parts; `ties` is symmetric.
void make_equal(Partition& partition, const Matrix& ties);

/// Swaps experts until the busiest part carries at most `cap` times the mean, each time the swap
/// that raises the cut least; false when no swap helps any further.
bool keep_load_below(Partition& partition, const Matrix& ties, std::span<const double> load,
                     double cap);

}  // namespace moehub
