/// Counts bits that sets have in common: the inner loop of Spread.
#pragma once
#include <cstdint>
#include <span>

namespace moehub {

/// Words of four sets; the last may be null: empty.
struct BitSets {
    const std::uint64_t* a;
    const std::uint64_t* b;
    const std::uint64_t* c;
    const std::uint64_t* d;
};

/// |a ∩ b ∩ c| + |a ∩ b ∩ d|, bits of a word weighing weights[word].
std::int64_t common_bits(const BitSets& sets, std::span<const int> weights);

}  // namespace moehub
