/// What a search moves: the slots of a layer, each a copy of an expert, and the tokens that choose
/// them.
#pragma once
#include "place/counts.hpp"

#include <moehub/place.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace moehub {

/// The items of one layer, expert by expert, copy by copy.
struct LayerItems {
    std::vector<int> first;   ///< first item of each expert; one more at the end
    std::vector<int> expert;  ///< expert of each item

    int size() const { return static_cast<int>(expert.size()); }
    int copies(int of) const { return first[at(of) + 1] - first[at(of)]; }
};
LayerItems items_of(const std::vector<int>& copies);

/// Which tokens of the profiles a search looks at: all, or evenly picked ones where there are more
/// than `most`. Tokens lie in words of 64; those of one word are of one profile and weigh the same.
class TokenSample {
  public:
    TokenSample(const std::vector<Profile>& profiles, std::int64_t most);

    struct Token {
        int profile = -1;  ///< profile of the token; −1: fills up a word
        std::int64_t token = 0;
    };
    const std::vector<Token>& tokens() const { return tokens_; }
    std::size_t words() const { return weights_.size(); }
    int weight(std::size_t word) const { return weights_[word]; }
    int profile(std::size_t word) const { return tokens_[word * 64].profile; }
    /// Weights of the profiles as the user gave them.
    const std::vector<double>& profile_weights() const { return profile_weights_; }
    std::span<const int> weights() const { return weights_; }
    std::int64_t total_weight() const { return total_weight_; }
    int top_k() const { return top_k_; }

  private:
    std::vector<Token> tokens_;
    std::vector<int> weights_;
    std::vector<double> profile_weights_;
    std::int64_t total_weight_ = 0;
    int top_k_ = 0;
};

/// Whole numbers in about the ratio of the weights, 1 where there is one; so small that sums over
/// `rows` rows fit into 31 bits.
std::vector<int> whole_weights(const std::vector<double>& weights, double rows);

/// The items that each token of the sample goes to in a layer.
class LayerTokens {
  public:
    LayerTokens(const std::vector<Profile>& profiles, const TokenSample& sample,
                const LayerItems& items, int layer);

    const TokenSample& sample() const { return *sample_; }
    std::size_t size() const { return sample_->tokens().size(); }
    /// The item that stands where a token has fewer than others: one past the last, so that
    /// counters by item can take it without asking.
    std::uint16_t nobody() const { return nobody_; }
    /// Items of a token, distinct but for nobody.
    std::span<const std::uint16_t> of(std::size_t token) const {
        return {chosen_.data() + token * top_k_, top_k_};
    }

  private:
    const TokenSample* sample_;
    std::size_t top_k_;
    std::uint16_t nobody_;
    std::vector<std::uint16_t> chosen_;
};

}  // namespace moehub
