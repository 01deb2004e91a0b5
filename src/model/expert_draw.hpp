/// Draws the experts of one layer's tokens, one token after the other.
#pragma once
#include "base/rng.hpp"
#include "model/urn.hpp"

#include <cstdint>
#include <vector>

namespace moehub {

/// A token's experts lie in `top` of `count` groups of neighbouring experts, all of one size.
struct GroupLimit {
    int count = 1;
    int top = 1;
};

class ExpertDraw {
  public:
    /// `shares` as from expert_shares; top_k at most the experts of limit.top groups.
    ExpertDraw(const std::vector<double>& shares, int top_k, GroupLimit limit);

    /// In this order for each token: next_token; allow_group for groups that are wanted; then
    /// allow_groups; then take or draw, top_k times in all.
    void next_token();
    /// Nothing happens when the token has all its groups already.
    void allow_group(std::size_t group);
    /// Draws the groups that are still missing.
    void allow_groups(Rng& rng);
    /// False when the token has that expert already, or may not have one of its group.
    bool take(std::uint16_t expert);
    std::uint16_t draw(Rng& rng);

    std::size_t group_of(std::uint16_t expert) const { return expert / group_size_; }

  private:
    void open(std::size_t group);
    std::size_t some_open_group(Rng& rng) const;
    std::size_t some_open_group_with_any_left(Rng& rng) const;
    std::uint16_t expert(std::size_t group, std::size_t index) const {
        return static_cast<std::uint16_t>(group * group_size_ + index);
    }

    std::size_t group_size_;
    std::size_t top_groups_;
    Urn groups_;
    std::vector<Urn> experts_;       ///< [group]
    std::vector<std::size_t> open_;  ///< groups that the token may use
    double open_total_ = 0;          ///< weight of their experts, chosen or not
    std::vector<bool> is_open_;      ///< [group]
};

}  // namespace moehub
