/// The MoE layer as plain arithmetic, for rows of a few numbers: what every simulated system must
/// compute. For a token with input x, chosen experts e and their weights w
///
///     y = Σ w · expert_e(x) + Σ shared(x),
///     expert(x) = down · (silu(gate · x) ∘ (up · x)),     gated
///     expert(x) = down · silu(up · x),                    not gated.
///
/// Inputs and matrices are made up, the same for all: a hash of their number, between -1 and 1.
#pragma once
#include <moehub/model.hpp>
#include <moehub/routing.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace moehub {

class ReferenceLayer {
  public:
    /// A layer whose rows have `width` numbers and whose experts have `inner`.
    ReferenceLayer(const Model& model, int width, int inner);

    int width() const { return width_; }
    int inner() const { return inner_; }

    std::vector<double> input(std::int64_t token) const;
    /// Adds the expert's output to `out`; of its inner numbers only [first, last): the parts of
    /// tensor-parallel shards add up. Experts from `experts` on are the shared ones.
    void add_expert(int expert, std::span<const double> x, std::span<double> out, int first,
                    int last) const;
    /// Adds what the shared experts make of x.
    void add_shared(std::span<const double> x, std::span<double> out) const;
    /// The layer's output for a token of the routing's first layer.
    std::vector<double> output(const Routing& routing, std::int64_t token) const;

  private:
    std::span<const double> matrix(int expert, int which) const;

    bool gated_;
    int experts_;
    int shared_;
    int width_;
    int inner_;
    std::vector<double> weights_;  ///< [expert][gate, up, down][inner][width]
};

}  // namespace moehub
