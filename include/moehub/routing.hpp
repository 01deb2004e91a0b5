/// Routing: for every layer and token its experts and their weights; generated or read from a
/// trace.
#pragma once
#include <moehub/model.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace moehub {

/// Numbers that many values share and nobody changes: copying one copies no number. They lie in
/// memory of its own, taken over from a vector, or in someone else's, which is kept alive.
template <class Value>
class SharedArray {
  public:
    SharedArray() = default;
    /// Takes the vector over.
    SharedArray(std::vector<Value> values) {
        auto owned = std::make_shared<const std::vector<Value>>(std::move(values));
        values_ = *owned;
        owner_ = std::move(owned);
    }
    SharedArray(std::initializer_list<Value> values) : SharedArray(std::vector<Value>(values)) {}
    /// Memory of someone else's, who must not change it while any copy of this lives. `owner` is
    /// released after the last of them, by whichever thread that is.
    SharedArray(std::span<const Value> values, std::shared_ptr<const void> owner)
        : values_(values), owner_(std::move(owner)) {}

    const Value* data() const { return values_.data(); }
    std::size_t size() const { return values_.size(); }
    bool empty() const { return values_.empty(); }
    auto begin() const { return values_.begin(); }
    auto end() const { return values_.end(); }
    const Value& operator[](std::size_t i) const { return values_[i]; }

    /// A run of the values, in the same memory. Throws std::out_of_range.
    SharedArray part(std::size_t first, std::size_t count) const {
        if (first > size() || count > size() - first)
            throw std::out_of_range("SharedArray: a part beyond its end");
        return {values_.subspan(first, count), owner_};
    }

    /// A copy of the values to change and to share again.
    std::vector<Value> copy() const { return {begin(), end()}; }

    bool operator==(const SharedArray& other) const {
        return std::equal(begin(), end(), other.begin(), other.end());
    }

  private:
    std::span<const Value> values_;
    std::shared_ptr<const void> owner_;
};

struct Routing {
    int experts = 0;
    int top_k = 0;
    int layers = 0;
    std::int64_t tokens = 0;
    SharedArray<std::uint16_t> chosen;  ///< [layer][token][choice], distinct within a token
    SharedArray<float> weights;         ///< [layer][token][choice]; positive, a token's sum is 1

    std::span<const std::uint16_t> chosen_by(int layer, std::int64_t token) const {
        return {chosen.data() + at(layer, token), static_cast<std::size_t>(top_k)};
    }
    std::span<const float> weights_of(int layer, std::int64_t token) const {
        return {weights.data() + at(layer, token), static_cast<std::size_t>(top_k)};
    }

  private:
    std::size_t at(int layer, std::int64_t token) const {
        return static_cast<std::size_t>((layer * tokens + token) * top_k);
    }
};

/// Throws InputError when it is not what it says: sizes, experts out of range or twice for a token,
/// weights that are not positive numbers.
void check(const Routing& routing);

/// How to generate a routing: the share of tokens each expert gets, and how one layer's choice
/// depends on the last one's. Printed and parsed as "uniform", "normal:0.032", "zipf:1",
/// "lognormal:0.5", each with ",transition:0.7" where it is not 0; and "balanced".
struct RoutingSpec {
    enum class Shares {
        uniform,    ///< all alike
        normal,     ///< share ~ N(1/experts, spread), negative ones 0: spread as the papers give it
        zipf,       ///< share ∝ rank^-spread, ranks in random order
        lognormal,  ///< share ∝ exp(spread · N(0, 1))
        balanced,   ///< nothing is drawn: a token's experts lie evenly apart, and all experts get
                    ///< as many tokens, few or many; for models without groups
    };
    Shares shares = Shares::uniform;
    double spread = 0;
    double transition = 0;  ///< 0 to 1: how often a choice follows the token's last layer's
    std::uint64_t seed = 1;
};

/// Reads a routing spec. Throws InputError with what is allowed.
RoutingSpec parse_routing(const std::string& text);
std::string to_string(const RoutingSpec& spec);

/// Same spec and seed, same bytes on every machine and compiler. Groups of experts (expert_groups,
/// top_groups) are respected.
Routing make_routing(const RoutingSpec& spec, const Model& model, std::int64_t tokens,
                     int layers = 1);

/// A trace: .npy of unsigned or signed integers, [tokens, layers, top_k], in C order. Weights are
/// 1/top_k. Throws InputError naming the file and what is wrong with it (ids out of range, an
/// expert twice for one token, a cut file, …).
Routing read_routing(const std::string& path, int experts);

/// One layer of a routing, and the first `tokens` tokens, in the same memory; repeated from the
/// start, in memory of its own, where the routing has fewer.
Routing one_layer(const Routing& routing, int layer, std::int64_t tokens);

}  // namespace moehub
