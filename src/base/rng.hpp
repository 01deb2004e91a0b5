/// Random numbers that are the same bytes on every compiler, library and machine: xoshiro256**
/// (Blackman, Vigna 2018), seeded through splitmix64. Only operations that IEEE 754 rounds exactly
/// (+ - * / sqrt) are used, none of <random>'s distributions.
#pragma once
#include <array>
#include <bit>
#include <cstdint>

namespace moehub {

/// Scrambles all bits of a small, regular number: the finaliser of splitmix64.
constexpr std::uint64_t mixed_bits(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

class Rng {
  public:
    /// Different streams of one seed are independent of each other.
    explicit Rng(std::uint64_t seed, std::uint64_t stream = 0);

    /// 64 random bits.
    std::uint64_t next() {
        const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
        const std::uint64_t shifted = state_[1] << 17;
        state_[2] ^= state_[0];
        state_[3] ^= state_[1];
        state_[1] ^= state_[2];
        state_[0] ^= state_[3];
        state_[2] ^= shifted;
        state_[3] = std::rotl(state_[3], 45);
        return result;
    }

    /// A number in [0, 1), a multiple of 2^-53.
    double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

    /// A number in (0, 1), the ends excluded: fit for a logarithm.
    double inside() { return (static_cast<double>(next() >> 12) + 0.5) * 0x1p-52; }

    /// A number in [0, bound), each value as likely; `bound` at least 1.
    std::uint64_t below(std::uint64_t bound);

    /// A normal number of mean 0, standard deviation 1.
    double normal();

    /// Puts the elements into a random order, each order as likely.
    template <class Sequence>
    void shuffle(Sequence& sequence) {
        for (std::size_t left = sequence.size(); left > 1; --left) {
            using std::swap;
            swap(sequence[left - 1], sequence[static_cast<std::size_t>(below(left))]);
        }
    }

  private:
    std::array<std::uint64_t, 4> state_;
    double spare_ = 0;  ///< normal numbers come in pairs
    bool has_spare_ = false;
};

}  // namespace moehub
