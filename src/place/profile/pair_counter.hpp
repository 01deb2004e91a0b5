/// Counts pairs of experts in recorded routing: within a layer, and from a layer to the next.
#pragma once
#include <moehub/profile.hpp>

#include <cstdint>
#include <vector>

namespace moehub {

/// Flat, [expert][expert]. A pair occurs at most once per token: 32 bits hold it, and more of the
/// matrix stays in cache.
using PairCounts = std::vector<std::uint32_t>;

/// Whose choice is the second of a pair: the token's own, or that of a token far away, which has
/// the same loads and the same noise but nothing to do with the first.
enum class Partner { itself, far_away };

/// Whether matrices of pairs of this profile are of a size worth the time and the memory.
bool pairs_fit(const Profile& profile);

/// Keeps one matrix, written anew by every count. The profile must outlive it, have tokens, and
/// pairs_fit.
class PairCounter {
  public:
    /// In all tokens, or in an even sample with at most `most_pairs` transitions from a layer to
    /// the next, 2^24 if more are asked for.
    PairCounter(const Profile& profile, std::int64_t most_pairs);

    std::int64_t tokens() const { return static_cast<std::int64_t>(sample_.size()); }
    std::size_t experts() const { return experts_; }

    /// Chosen in the same layer by one token; first < second.
    const PairCounts& coactive(int layer, Partner partner);
    /// Chosen in the layer, and in the next.
    const PairCounts& transitions(int layer, Partner partner);
    /// Rows of each expert in the same tokens.
    std::vector<std::int64_t> loads(int layer) const;

  private:
    void count_own_pairs(int layer);
    void count_far_pairs(int layer);
    std::int64_t second_token(std::size_t at, Partner partner) const {
        const std::size_t shift = partner == Partner::itself ? 0 : sample_.size() / 2;
        return sample_[(at + shift) % sample_.size()];
    }

    const Profile& profile_;
    std::size_t experts_;
    std::vector<std::int64_t> sample_;
    PairCounts counts_;
};

}  // namespace moehub
