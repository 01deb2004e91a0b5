#include "base/rng.hpp"

#include "base/portable_math.hpp"

#include <cmath>

namespace moehub {
namespace {

std::uint64_t splitmix64(std::uint64_t& state) {
    state += 0x9e3779b97f4a7c15;
    return mixed_bits(state);
}

}  // namespace

Rng::Rng(std::uint64_t seed, std::uint64_t stream) {
    // Stream 0 is the plain published seeding. Others start where their number, mixed, leads to: a
    // plain sum of seed and stream would make stream 1 of seed 1 equal stream 0 of seed 2.
    if (stream != 0) seed ^= splitmix64(stream);
    for (auto& word : state_) word = splitmix64(seed);
}

std::uint64_t Rng::below(std::uint64_t bound) {
    // As many bits as bound - 1 has, drawn again while too large: no modulo, hence no bias.
    const int unused = std::countl_zero((bound - 1) | 1);
    for (;;) {
        const std::uint64_t value = next() >> unused;
        if (value < bound) return value;
    }
}

double Rng::normal() {
    if (has_spare_) {
        has_spare_ = false;
        return spare_;
    }
    // Marsaglia's polar method: a point in the unit disc, no sine and cosine.
    for (;;) {
        const double x = 2 * uniform() - 1;
        const double y = 2 * uniform() - 1;
        const double square = x * x + y * y;
        if (square >= 1 || square == 0) continue;
        const double scale = std::sqrt(-2 * portable_log(square) / square);
        spare_ = y * scale;
        has_spare_ = true;
        return x * scale;
    }
}

}  // namespace moehub
