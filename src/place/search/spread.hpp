/// Spread: how many distinct GPUs (or nodes) a layer's tokens go to, and how that changes when two
/// items swap places.
///
/// Let one(d) be the tokens with exactly one item on domain d, none(d) those without any. When a
/// leaves d for e and b leaves e for d, the sum over tokens changes by
///     − |a ∩ one(d)| − |b ∩ one(e)| + |b ∩ none(d)| + |a ∩ none(e)|
///     + |a ∩ b ∩ one(d)| + |a ∩ b ∩ one(e)|,
/// where a, b are the tokens of the items. The first four are kept in tables, so a bound from below
/// costs four loads, and most proposals of a search end there.
#pragma once
#include "place/search/items.hpp"

namespace moehub {

class Spread {
  public:
    /// `domain_of` has the domain of each item.
    Spread(const LayerTokens& tokens, std::vector<int> domain_of, int domains);

    /// Distinct domains, weighted sum over the tokens.
    std::int64_t total() const { return total_; }

    /// A bound from below of what swapping the two adds to the total.
    std::int64_t least_change(int a, int b) const {
        const int from = domain_of_[at(a)];
        const int to = domain_of_[at(b)];
        if (from == to) return 0;
        return std::int64_t{none(b, from)} + none(a, to) - one_[at(a)] - one_[at(b)];
    }
    /// What swapping the two adds to the total, exactly, given least_change().
    std::int64_t change(int a, int b, std::int64_t least) const;
    void swap(int a, int b);

  private:
    std::int32_t none(int item, int domain) const {
        return none_[at(domain) * (domain_of_.size() + 1) + at(item)];
    }
    const std::uint64_t* bits(int item) const { return bits_.data() + at(item) * words_; }
    std::uint64_t* any(int domain) { return any_.data() + at(domain) * words_; }
    std::uint64_t* one(int domain) { return single_.data() + at(domain) * words_; }
    const std::uint64_t* one(int domain) const { return single_.data() + at(domain) * words_; }

    void exchange(int in, int out, int domain);
    int add_none(std::size_t word, std::uint64_t tokens, int domain, int weight);
    void gather(int domain);

    const LayerTokens* tokens_;
    std::size_t domains_;
    std::size_t words_;
    std::vector<int> domain_of_;
    std::vector<std::vector<int>> items_;  ///< items of each domain
    std::vector<std::uint64_t> bits_;      ///< tokens of each item, [item][word]
    std::vector<std::uint64_t> any_;       ///< tokens with an item on the domain, [domain][word]
    std::vector<std::uint64_t> single_;    ///< tokens with one item there, [domain][word]
    std::vector<std::int32_t> none_;       ///< |item ∩ none(domain)|, [domain][item or nobody]
    std::vector<std::int32_t> one_;        ///< |item ∩ one(domain_of)|, [item]
    std::int64_t total_ = 0;
};

// Activated experts: in decode a GPU reads the weights of every expert that a batch wakes, so what
// counts is the GPU with the most of them.

class Activated {
  public:
    /// `batch` tokens in a row are a batch; a rest shorter than that is left out.
    Activated(const LayerTokens& tokens, std::vector<int> gpu_of, int gpus, int batch);

    /// GPU with the most awake items over the mean, mean over batches.
    double value() const;
    double change(int a, int b) const;
    double batches() const { return static_cast<double>(batches_); }
    void swap(int a, int b);

  private:
    bool awake(int item, std::size_t batch) const { return awake_[at(item) * batches_ + batch]; }
    int most_but(std::size_t batch, std::size_t g, std::size_t h) const;

    std::size_t gpus_;
    std::size_t batches_ = 0;
    std::vector<int> gpu_of_;
    std::vector<std::uint8_t> awake_;  ///< whether a batch wakes the item, [item][batch]
    std::vector<int> count_;           ///< awake items, [batch][gpu]
    std::vector<double> mean_;         ///< mean of the GPUs' awake items, [batch]
};

}  // namespace moehub
