#include "base/input_error.hpp"
#include "base/portable_math.hpp"
#include "base/rng.hpp"
#include "model/expert_draw.hpp"
#include "model/routing_limits.hpp"
#include "model/routing_shares.hpp"

#include <moehub/routing.hpp>

#include <algorithm>
#include <functional>
#include <numeric>
#include <tuple>

namespace moehub {
namespace {

/// What a random number is for. Each use of each layer has its own stream, so that the first layers
/// and tokens of a routing do not depend on how many follow.
enum class Use : std::uint64_t { shares, order, experts, weights, count };

Rng stream(const RoutingSpec& spec, int layer, Use use) {
    constexpr auto kUses = static_cast<std::uint64_t>(Use::count);
    return Rng(spec.seed,
               static_cast<std::uint64_t>(layer) * kUses + static_cast<std::uint64_t>(use) + 1);
}

/// Experts, hot groups first, within a group hot experts first, at random where shares are equal.
std::vector<std::uint16_t> hottest_first(const std::vector<double>& shares, int groups, Rng rng) {
    const std::size_t size = shares.size() / static_cast<std::size_t>(groups);
    std::vector<double> group_share(static_cast<std::size_t>(groups), 0.0);
    for (std::size_t i = 0; i < shares.size(); ++i) group_share[i / size] += shares[i];

    std::vector<std::uint16_t> order(shares.size());
    std::iota(order.begin(), order.end(), std::uint16_t{0});
    std::vector<std::uint64_t> lot(shares.size());
    for (auto& number : lot) number = rng.next();
    const auto key = [&](std::uint16_t expert) {
        const std::size_t group = expert / size;
        return std::tuple(-group_share[group], lot[group * size], group, -shares[expert],
                          lot[expert], expert);
    };
    std::sort(order.begin(), order.end(),
              [&](std::uint16_t a, std::uint16_t b) { return key(a) < key(b); });
    return order;
}

/// Where a token that followed an expert of the last layer goes in this one: the hottest after the
/// hottest, and so on, which leaves the shares as they are. Groups stay together.
std::vector<std::uint16_t> successors(const std::vector<std::uint16_t>& last_order,
                                      const std::vector<std::uint16_t>& order) {
    std::vector<std::uint16_t> successor(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) successor[last_order[i]] = order[i];
    return successor;
}

/// One layer without a last one, or without looking at it.
void choose(ExpertDraw& draw, std::span<std::uint16_t> chosen, Rng& rng) {
    draw.next_token();
    draw.allow_groups(rng);
    for (auto& expert : chosen) expert = draw.draw(rng);
}

/// One layer whose choices follow those of the last with probability `transition` each.
void choose_after(ExpertDraw& draw, std::span<std::uint16_t> chosen,
                  std::span<const std::uint16_t> wanted, double transition, Rng& rng) {
    draw.next_token();
    for (const auto expert : wanted)
        if (rng.uniform() < transition) draw.allow_group(draw.group_of(expert));
    draw.allow_groups(rng);
    for (std::size_t choice = 0; choice < chosen.size(); ++choice) {
        const bool follows = rng.uniform() < transition && draw.take(wanted[choice]);
        chosen[choice] = follows ? wanted[choice] : draw.draw(rng);
    }
}

/// Positive numbers, descending, 1 in sum; every such vector as likely (Dirichlet of ones).
void fill_weights(std::span<float> weights, std::vector<double>& numbers, Rng& rng) {
    double sum = 0;
    for (auto& number : numbers) sum += number = -portable_log(rng.inside());
    std::sort(numbers.begin(), numbers.end(), std::greater<>());
    for (std::size_t i = 0; i < weights.size(); ++i)
        weights[i] = static_cast<float>(numbers[i] / sum);
}

/// Numbers below `count` in bit-reversed order: however few are taken from the start, they lie
/// evenly over the range.
std::vector<std::uint32_t> spread_out(std::uint32_t count) {
    std::uint32_t bits = 0;
    while ((1u << bits) < count) ++bits;
    std::vector<std::uint32_t> order;
    for (std::uint32_t i = 0; i < (1u << bits); ++i) {
        std::uint32_t reversed = 0;
        for (std::uint32_t bit = 0; bit < bits; ++bit)
            if ((i >> bit & 1) != 0) reversed |= 1u << (bits - 1 - bit);
        if (reversed < count) order.push_back(reversed);
    }
    return order;
}

class RoutingMaker {
  public:
    RoutingMaker(const RoutingSpec& spec, const Model& model, std::int64_t tokens, int layers)
        : spec_(spec) {
        // Groups that a token may use all of are no limit.
        if (model.top_groups < model.expert_groups)
            limit_ = {model.expert_groups, model.top_groups};
        routing_.experts = model.experts;
        routing_.top_k = model.top_k;
        routing_.layers = layers;
        routing_.tokens = tokens;
        const auto rows = static_cast<std::size_t>(layers * tokens * model.top_k);
        chosen_.resize(rows);
        weights_.resize(rows);
    }

    Routing make() {
        for (int layer = 0; layer < routing_.layers; ++layer) {
            if (spec_.shares == RoutingSpec::Shares::balanced)
                fill_balanced(layer);
            else
                fill_experts(layer);
            fill_weights_of(layer);
        }
        routing_.chosen = std::move(chosen_);
        routing_.weights = std::move(weights_);
        return std::move(routing_);
    }

  private:
    template <class Value>
    std::span<Value> of_token(std::vector<Value>& values, int layer, std::int64_t token) const {
        const auto first = (layer * routing_.tokens + token) * routing_.top_k;
        return {values.data() + first, static_cast<std::size_t>(routing_.top_k)};
    }

    void fill_experts(int layer) {
        Rng shares_rng = stream(spec_, layer, Use::shares);
        const auto shares = expert_shares(spec_, routing_.experts, routing_.top_k, shares_rng);
        auto order = hottest_first(shares, limit_.count, stream(spec_, layer, Use::order));
        ExpertDraw draw(shares, routing_.top_k, limit_);
        Rng rng = stream(spec_, layer, Use::experts);
        if (layer == 0 || spec_.transition == 0) {
            for (std::int64_t token = 0; token < routing_.tokens; ++token)
                choose(draw, of_token(chosen_, layer, token), rng);
        } else {
            const auto successor = successors(last_order_, order);
            std::vector<std::uint16_t> wanted(static_cast<std::size_t>(routing_.top_k));
            for (std::int64_t token = 0; token < routing_.tokens; ++token) {
                const auto last = of_token(chosen_, layer - 1, token);
                std::transform(last.begin(), last.end(), wanted.begin(),
                               [&](std::uint16_t expert) { return successor[expert]; });
                choose_after(draw, of_token(chosen_, layer, token), wanted, spec_.transition, rng);
            }
        }
        last_order_ = std::move(order);
    }

    /// Slot s of a token gets the expert s · experts / top_k behind the token's first one. First
    /// ones run over one such distance where it is whole, else over all experts.
    void fill_balanced(int layer) {
        const auto experts = static_cast<std::uint32_t>(routing_.experts);
        const auto choices = static_cast<std::uint32_t>(routing_.top_k);
        const auto first = spread_out(experts % choices == 0 ? experts / choices : experts);
        for (std::int64_t token = 0; token < routing_.tokens; ++token) {
            const auto chosen = of_token(chosen_, layer, token);
            const std::uint32_t offset = first[static_cast<std::size_t>(token) % first.size()];
            for (std::uint32_t choice = 0; choice < choices; ++choice)
                chosen[choice] =
                    static_cast<std::uint16_t>((offset + choice * experts / choices) % experts);
        }
    }

    void fill_weights_of(int layer) {
        Rng rng = stream(spec_, layer, Use::weights);
        std::vector<double> numbers(static_cast<std::size_t>(routing_.top_k));
        for (std::int64_t token = 0; token < routing_.tokens; ++token)
            fill_weights(of_token(weights_, layer, token), numbers, rng);
    }

    const RoutingSpec& spec_;
    GroupLimit limit_;
    Routing routing_;  ///< without its rows, which are filled first
    std::vector<std::uint16_t> chosen_;
    std::vector<float> weights_;
    std::vector<std::uint16_t> last_order_;  ///< order of the last layer's experts
};

}  // namespace

Routing make_routing(const RoutingSpec& spec, const Model& model, std::int64_t tokens, int layers) {
    check_spec(spec);
    check_sizes(model, tokens, layers);
    if (spec.shares == RoutingSpec::Shares::balanced && model.top_groups < model.expert_groups)
        throw input_error(
            "routing: balanced spreads a token over all experts, found a model that allows {} of "
            "{} groups",
            model.top_groups, model.expert_groups);
    try {
        return RoutingMaker(spec, model, tokens, layers).make();
    } catch (const std::bad_alloc&) {
        throw input_error("routing: {} tokens, {} layers and top_k {} do not fit in memory", tokens,
                          layers, model.top_k);
    }
}

}  // namespace moehub
