/// What a matrix of counted pairs says.
#pragma once
#include "place/profile/pair_counter.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace moehub {

std::int64_t total_of(const PairCounts& counts);

/// How many cells hold 0, 1, 2, … pairs: sums over cells become sums over the few values they have.
using Histogram = std::vector<std::int64_t>;
Histogram histogram_of(const PairCounts& counts);

/// Share of the pairs in the heaviest tenth of `cells`; what the histogram has beyond that many
/// holds nothing. 0 without pairs.
double heaviest_tenth(const Histogram& histogram, std::size_t cells);

struct Margins {
    std::vector<std::int64_t> rows;
    std::vector<std::int64_t> columns;
    std::int64_t all = 0;
};
Margins margins_of(const PairCounts& counts, std::size_t experts);

/// Mutual information of row and column, in bits.
double information_bits(const Margins& margins, const Histogram& histogram);

}  // namespace moehub
