/// Drawing by weight: with and without putting back.
#pragma once
#include "base/rng.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace moehub {

/// Draws an index with probability proportional to its weight in constant time (Walker's alias
/// method, built as by Vose): as many equal boxes as indices, each shared by two at most.
class AliasTable {
  public:
    /// No weight negative, at most 2^32 of them. With a sum of 0 there is nothing to draw.
    explicit AliasTable(std::span<const double> weights);

    double total() const { return total_; }  ///< sum of the weights

    /// Draws an index, never one of weight 0. Needs total() > 0.
    std::size_t draw(Rng& rng) const {
        // uniform() is below 1 by 2^-53 or more, so the product rounds to below the size.
        const double position = rng.uniform() * static_cast<double>(boxes_.size());
        const auto index = static_cast<std::size_t>(position);
        const Box& box = boxes_[index];
        return position - static_cast<double>(index) < box.own ? index : box.other;
    }

  private:
    struct Box {
        double own;           ///< part of the box that is its own index's
        std::uint32_t other;  ///< whose the rest is
    };
    std::vector<Box> boxes_;
    double total_ = 0;
};

/// Draws distinct things, each with probability proportional to its weight among those left. Things
/// of infinite weight come first, things of weight 0 last, in random order.
class Urn {
  public:
    /// No weight negative.
    explicit Urn(std::vector<double> weights);

    /// Puts everything back; constant time. At most 2^32 - 2 times.
    void refill() {
        ++round_;
        left_ = weights_.size();
        next_certain_ = 0;
    }

    std::size_t left() const { return left_; }       ///< how many things are in
    double total() const { return table_.total(); }  ///< finite weights of all things, in or out
    double weight_left() const;                      ///< weight of the things in; walks over all

    /// Takes this thing out; false when it is out already.
    bool take(std::size_t index) {
        if (out_[index] == round_) return false;
        out_[index] = round_;
        --left_;
        return true;
    }

    /// Draws a thing of infinite weight that is in; nothing when there is none.
    std::optional<std::size_t> draw_certain(Rng& rng) {
        while (next_certain_ < certain_.size())
            if (const std::size_t index = next_certain(rng); take(index)) return index;
        return std::nullopt;
    }

    /// One try in constant time: nothing when it hits a thing that is out. Repeated until it hits,
    /// or given up for draw_left, it draws by finite weight. Needs total() > 0.
    std::optional<std::size_t> try_draw(Rng& rng) {
        const std::size_t index = table_.draw(rng);
        return take(index) ? std::optional(index) : std::nullopt;
    }

    /// Draws by finite weight without fail; walks over all. Needs left() > 0.
    std::size_t draw_left(Rng& rng);

    /// draw_certain, then a few tries, then draw_left: a bounded effort however uneven the weights
    /// are. Needs left() > 0.
    std::size_t draw(Rng& rng);

    static constexpr int kTries = 32;

  private:
    std::size_t next_certain(Rng& rng);

    std::vector<std::size_t> certain_;  ///< things of infinite weight; done before next_certain_
    std::size_t next_certain_ = 0;
    std::vector<double> weights_;  ///< finite; 0 for certain things, which are out before it counts
    AliasTable table_;
    std::vector<std::uint32_t> out_;  ///< [thing] round in which it was last taken
    std::uint32_t round_ = 1;
    std::size_t left_ = weights_.size();
};

}  // namespace moehub
