/// Chain: transitions from layer to layer, and how they change when two items of a layer swap.
///
/// Let f(a, x) be the transitions between item a and the items on domain x in the layers before and
/// after. When a goes from g to h and b from h to g, then with v(x) = f(b, x) − f(a, x) the
/// unordered pair {g, x} gains v(x) and {h, x} loses it, for every x; what stays on its domain
/// gains v(g) − v(h).
#pragma once
#include "place/counts.hpp"
#include "place/search/items.hpp"

#include <cmath>

namespace moehub {

/// The weight of one transition of each profile, so that profiles count by their weights however
/// many transitions they have. One LayerTokens per layer.
std::vector<int> transition_weights(const std::vector<LayerTokens>& tokens);

class Chain {
  public:
    /// `domain_of`: [layer][item] → domain.
    Chain(const std::vector<LayerTokens>& tokens, std::vector<std::vector<int>> domain_of,
          int domains);

    /// Share of transitions between two domains, and the heaviest pair over what it would be if all
    /// were even.
    double off_domain() const {
        std::int64_t stay = 0;
        for (std::size_t g = 0; g < domains_; ++g) stay += pairs_[g * domains_ + g];
        return total_ > 0 ? 1 - static_cast<double>(stay) / static_cast<double>(total_) : 0;
    }
    double heaviest_pair() const;
    /// A smooth stand-in for the heaviest pair, which it comes near to from below: the eighth root
    /// of the mean of all pairs' eighth powers.
    double pair_norm() const { return norm_of(powers_); }

    double off_domain_change(int layer, int a, int b) const;
    double pair_norm_change(int layer, int a, int b) const;
    void swap(int layer, int a, int b);

    /// Transitions from the layer before, [domain of this layer × domain of the one before].
    Matrix from_before(int layer) const;
    const std::vector<int>& domain_of(int layer) const { return domain_of_[at(layer)]; }
    /// Builds the tables anew from other places; transitions stay.
    void place(std::vector<std::vector<int>> domain_of);

  private:
    using Counts = std::vector<std::int32_t>;
    const std::int32_t* pull(int layer, int item) const {
        return pull_[at(layer)].data() + at(item) * domains_;
    }
    struct Swap {
        std::size_t a, b, from, to;
    };
    void shift(int layer, const Counts& rows, const Swap& done);
    double norm_of(double powers) const {
        const double pairs = static_cast<double>(domains_ * (domains_ - 1)) / 2;
        return pairs > 0 ? std::sqrt(std::sqrt(std::sqrt(std::max(powers, 0.0) / pairs))) : 0;
    }
    double power(double pair) const;

    std::size_t domains_;
    std::vector<std::vector<int>> domain_of_;
    std::vector<Counts> next_;         ///< by layer: [item][item of the next layer]
    std::vector<Counts> previous_;     ///< by layer: [item][item of the layer before]
    std::vector<Counts> pull_;         ///< f above for each layer, [item][domain]
    std::vector<std::int64_t> pairs_;  ///< transitions, [domain][domain]; the diagonal once
    std::int64_t total_ = 0;
    double powers_ = 0;  ///< Σ over pairs of domains of power()
};

}  // namespace moehub
