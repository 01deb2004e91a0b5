/// What summaries of recorded routing are made of: how uneven loads are, pairs of experts within a
/// layer and from a layer to the next, and orders of experts in which a matrix of pairs shows its
/// blocks.
#pragma once
#include "place/counts.hpp"

#include <moehub/profile.hpp>
#include <moehub/profile_summary.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace moehub {

/// Summary of a load; all but `tokens` is filled in.
LoadSummary load_summary(std::span<const double> rows_of_expert, int gpus);

/// GPU of each expert, experts in order.
std::vector<int> contiguous_gpus(int experts, int gpus);

/// How many things were drawn on each side; each brought `per_draw` rows, all of different experts.
struct Draws {
    double first = 0;
    double second = 0;
    double per_draw = 1;
};
/// How much two loads differ; none where a side has no rows.
std::optional<LoadDifference> load_difference(std::span<const double> first,
                                              std::span<const double> second, const Draws& draws);

/// Counts of pairs, flat, [expert][expert]. A pair occurs at most once per token: 32 bits hold it,
/// and more of the matrix stays in cache.
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
    /// Counts in all tokens, or in an even sample with at most `most_pairs` transitions from a
    /// layer to the next, 2^24 if more are asked for.
    PairCounter(const Profile& profile, std::int64_t most_pairs);

    std::int64_t tokens() const { return static_cast<std::int64_t>(sample_.size()); }
    std::size_t experts() const { return experts_; }

    /// Pairs chosen in the same layer by one token; first < second.
    const PairCounts& coactive(int layer, Partner partner);
    /// Pairs of an expert chosen in the layer and one chosen in the next.
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

CoactivationSummary coactivation_summary(PairCounter& counter, int layer, int top_pairs);
/// Summary of transitions; `gpu_of` each expert, the same in both layers.
TransitionSummary transition_summary(PairCounter& counter, int layer,
                                     const std::vector<int>& gpu_of);

/// Lift over chance, flat, [expert][expert]. See PairMatrices.
std::vector<double> coactivation_lift(PairCounter& counter, int layer);
std::vector<double> transition_lift(PairCounter& counter, int layer);

/// Experts in an order in which those chosen together are neighbours, by a symmetric matrix, flat.
/// Starts with the strongest pair and goes on with whoever is nearest to the last few.
std::vector<int> chained(const std::vector<double>& symmetric, int experts);

/// Columns in an order in which the strong cells lie along the diagonal, rows in the order given.
std::vector<int> along_diagonal(const std::vector<double>& matrix, const std::vector<int>& rows);

/// The matrix with rows and columns in these orders.
std::vector<double> reordered(const std::vector<double>& matrix, const std::vector<int>& rows,
                              const std::vector<int>& columns);

}  // namespace moehub
