#include "place/search/common_bits.hpp"

#include <bit>

namespace moehub {
namespace {

inline __attribute__((always_inline)) std::int64_t count(const BitSets& sets,
                                                         std::span<const int> weights) {
    std::int64_t sum = 0;
    for (std::size_t word = 0; word < weights.size(); ++word) {
        const std::uint64_t both = sets.a[word] & sets.b[word];
        int bits = std::popcount(both & sets.c[word]);
        if (sets.d) bits += std::popcount(both & sets.d[word]);
        sum += std::int64_t{bits} * weights[word];
    }
    return sum;
}

#if defined(__x86_64__)
// The x86-64 baseline has no instruction for it; every processor since 2008 does.
__attribute__((target("popcnt"))) std::int64_t count_fast(const BitSets& sets,
                                                          std::span<const int> weights) {
    return count(sets, weights);
}
#endif

}  // namespace

std::int64_t common_bits(const BitSets& sets, std::span<const int> weights) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("popcnt")) return count_fast(sets, weights);
#endif
    return count(sets, weights);
}

}  // namespace moehub
