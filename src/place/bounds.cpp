#include "place/bounds.hpp"

#include "base/parallel.hpp"
#include "place/eplb.hpp"

#include <moehub/place.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

namespace moehub {

// The GPU with the heaviest expert holds as many others as it has slots, at least the lightest
// ones; of the j·G + 1 heaviest experts some GPU of G holds j + 1, at least the lightest of them.
double load_bound(std::span<const double> rows_of_expert, int gpus, SlotCounts slots) {
    std::vector<double> ascending(rows_of_expert.begin(), rows_of_expert.end());
    std::sort(ascending.begin(), ascending.end());
    const auto sum_of = [&ascending](std::size_t first, std::size_t count) {
        const auto begin = ascending.begin() + static_cast<std::ptrdiff_t>(first);
        return std::accumulate(begin, begin + static_cast<std::ptrdiff_t>(count), 0.0);
    };
    const std::size_t experts = ascending.size();
    const double total = sum_of(0, experts);
    if (!(total > 0)) return 0;
    const auto parts = at(gpus);
    const std::size_t least =
        slots == SlotCounts::equal ? std::max<std::size_t>(experts / parts, 1) : 1;
    double bound = ascending.back() + sum_of(0, least - 1);
    for (std::size_t j = 1; j * parts + 1 <= experts; ++j)
        bound = std::max(bound, sum_of(experts - (j * parts + 1), j + 1));
    return std::max(1.0, bound * gpus / total);
}

namespace {

double largest_sum(std::vector<double>& values, int count) {
    const auto size =
        std::min(static_cast<std::ptrdiff_t>(count), static_cast<std::ptrdiff_t>(values.size()));
    if (size <= 0) return 0;
    std::nth_element(values.begin(), values.begin() + (size - 1), values.end(), std::greater<>());
    return std::accumulate(values.begin(), values.begin() + size, 0.0);
}

/// Parts of a domain of GPUs: one GPU, or a node.
struct Domain {
    int count = 0;     ///< how many domains there are
    int slots = 0;     ///< slots of one domain
    double share = 0;  ///< GPUs of one domain
};

/// The items of a layer: experts, or their copies as the layout has them, each with the tokens that
/// go to it.
struct LayerLoads {
    std::vector<double> items;   ///< rows of each item, an expert's shared by its copies
    std::vector<double> tokens;  ///< tokens that go to each item
    double mean = 0;             ///< rows of a GPU
    double cap = 0;              ///< most rows of a GPU
};

LayerLoads loads_of(const Profile& profile, const PlaceOptions& options, const ExpertLayout& layout,
                    int layer) {
    const LayerCopies copies(layout, layer);
    LayerLoads loads;
    for (int expert = 0; expert < profile.experts; ++expert)
        for (int copy = 0; copy < copies.of(expert); ++copy)
            loads.items.push_back(profile.counts_of(layer)[at(expert)] / copies.of(expert));
    loads.tokens.resize(loads.items.size());
    for (std::int64_t token = 0; token < profile.tokens; ++token)
        for (const int expert : experts_of(profile, layer, token))
            loads.tokens[at(copies.slot(expert, token))] += 1;
    const std::vector<double> gpus = gpu_loads(profile, layout, layer);
    loads.mean = std::accumulate(gpus.begin(), gpus.end(), 0.0) / static_cast<double>(gpus.size());
    const double achieved = *std::max_element(gpus.begin(), gpus.end());
    loads.cap = options.load_cap > 0
                    ? std::max(options.load_cap * loads.mean, achieved) * (1 + 1e-9)
                    : std::numeric_limits<double>::infinity();
    return loads;
}

/// A bound of the load with copies: those that make the heaviest item lightest.
double copied_load_bound(std::span<const double> counts, int gpus, int redundant) {
    const double mean = std::accumulate(counts.begin(), counts.end(), 0.0) / gpus;
    if (mean <= 0) return 1;
    const std::vector<int> copies = copies_of(counts, static_cast<int>(counts.size()) + redundant);
    double heaviest = 0;
    for (std::size_t expert = 0; expert < counts.size(); ++expert)
        heaviest = std::max(heaviest, counts[expert] / copies[expert]);
    return std::max(1.0, heaviest / mean);
}

/// Tokens that two items of a layer share, nothing on the diagonal.
Matrix shared_within(const Profile& profile, const LayerCopies& copies, int layer) {
    Matrix both(copies.slots(), copies.slots());
    for (std::int64_t token = 0; token < profile.tokens; ++token)
        for (const int a : experts_of(profile, layer, token))
            for (const int b : experts_of(profile, layer, token))
                if (a != b) both(copies.slot(a, token), copies.slot(b, token)) += 1;
    return both;
}

/// Tokens that an item shares with one of the next layer.
Matrix shared_with_next(const Profile& profile, const ExpertLayout& layout, int layer) {
    const LayerCopies here(layout, layer);
    const LayerCopies next(layout, layer + 1);
    Matrix both(here.slots(), next.slots());
    for (std::int64_t token = 0; token < profile.tokens; ++token)
        for (const int a : experts_of(profile, layer, token))
            for (const int b : experts_of(profile, layer + 1, token))
                both(here.slot(a, token), next.slot(b, token)) += 1;
    return both;
}

Matrix transposed(const Matrix& matrix) {
    Matrix other(matrix.columns, matrix.rows);
    for (int i = 0; i < matrix.rows; ++i)
        for (int j = 0; j < matrix.columns; ++j) other(j, i) = matrix(i, j);
    return other;
}

/// A bound from below of distinct domains, summed over the layer's tokens.
double distinct_bound(const Matrix& both, const LayerLoads& loads, const Domain& domain) {
    double sum = 0;
    for (int item = 0; item < both.rows; ++item) {
        const double tokens = loads.tokens[at(item)];
        if (tokens <= 0) continue;
        const double shared =
            most_gain(both.row(item), loads.items,
                      {domain.slots - 1, loads.cap * domain.share - loads.items[at(item)]});
        double best = 0;
        for (int m = 0; m < domain.slots; ++m)
            best = std::max(best, 2 * tokens / (m + 2) - shared / ((m + 1.0) * (m + 2.0)));
        sum += best;
    }
    return sum;
}

/// A bound from above of transitions that stay on their domain.
double staying_bound(const Matrix& moves, const LayerLoads& next, const Domain& domain) {
    double sum = 0;
    for (int item = 0; item < moves.rows; ++item)
        sum += most_gain(moves.row(item), next.items, {domain.slots, next.cap * domain.share});
    return sum;
}

/// What one layer (and the boundary after it) adds.
struct Sums {
    double load = 0;
    double gpus = 0;
    double nodes = 0;
    double moves = 0;  ///< transitions in all
    double stay_on_gpu = 0;
    double stay_on_node = 0;
    double off_by_layer = 0;  ///< shares that leave their GPU, summed over boundaries
    int boundaries = 0;       ///< boundaries with transitions
};

class Bounds {
  public:
    Bounds(const PlaceInput& input, const PlaceOptions& options, const ExpertLayout& layout)
        : input_(input), options_(options), layout_(layout), slots_(slots_per_gpu(layout)) {
        const int each = input.gpus / input.nodes;
        gpu_ = {input.gpus, slots_, 1};
        node_ = {input.nodes, slots_ * each, static_cast<double>(each)};
    }

    Evaluation of(const Profile& profile) const {
        std::vector<Sums> layers(at(profile.layers));
        run_parallel(
            layers.size(),
            [&](std::size_t layer) { layers[layer] = of_layer(profile, static_cast<int>(layer)); },
            {options_.threads, {}});
        Sums all;
        for (const Sums& layer : layers) {
            all.load += layer.load / profile.layers;
            all.gpus += layer.gpus;
            all.nodes += layer.nodes;
            all.moves += layer.moves;
            all.stay_on_gpu += layer.stay_on_gpu;
            all.stay_on_node += layer.stay_on_node;
            if (layer.moves <= 0) continue;
            all.off_by_layer += std::max(0.0, 1 - layer.stay_on_gpu / layer.moves);
            ++all.boundaries;
        }
        return result(profile, all);
    }

  private:
    /// Bounds of transitions take long for many experts: then only where they are asked for.
    bool wants_transitions(const Profile& profile) const {
        constexpr double kSoon = 1 << 20;
        const Objective want = options_.objective.value_or(Objective{});
        return want.transitions > 0 || want.pair > 0 || want.node_transitions > 0 ||
               static_cast<double>(profile.layers) * profile.experts * profile.experts <= kSoon;
    }

    Sums of_layer(const Profile& profile, int layer) const {
        Sums sums;
        const LayerLoads here = loads_of(profile, options_, layout_, layer);
        const auto counts = profile.counts_of(layer);
        sums.load =
            input_.redundant > 0
                ? copied_load_bound(counts, input_.gpus, input_.redundant)
                : std::max(1.0, load_bound(counts, input_.gpus,
                                           slots_ > 0 ? SlotCounts::equal : SlotCounts::any));
        if (!profile.has_tokens() || slots_ == 0) return sums;
        const Matrix both = shared_within(profile, LayerCopies(layout_, layer), layer);
        sums.gpus = distinct_bound(both, here, gpu_);
        if (input_.nodes > 1) sums.nodes = distinct_bound(both, here, node_);
        if (layer + 1 == profile.layers || !wants_transitions(profile)) return sums;
        const LayerLoads next = loads_of(profile, options_, layout_, layer + 1);
        const Matrix forth = shared_with_next(profile, layout_, layer);
        const Matrix back = transposed(forth);
        sums.moves = std::accumulate(forth.at_.begin(), forth.at_.end(), 0.0);
        sums.stay_on_gpu =
            std::min(staying_bound(forth, next, gpu_), staying_bound(back, here, gpu_));
        if (input_.nodes > 1)
            sums.stay_on_node =
                std::min(staying_bound(forth, next, node_), staying_bound(back, here, node_));
        return sums;
    }

    Evaluation result(const Profile& profile, const Sums& all) const {
        Evaluation bounds;
        bounds.load_max_over_mean = all.load;
        if (!profile.has_tokens()) return bounds;
        bounds.activated_max_over_mean = 1;
        bounds.gpus_per_token = bounds.nodes_per_token = 1;
        if (slots_ == 0) return bounds;
        const double visits = static_cast<double>(profile.tokens) * profile.layers;
        bounds.gpus_per_token = std::max(1.0, all.gpus / visits);
        bounds.nodes_per_token = std::max(1.0, all.nodes / visits);
        if (all.moves <= 0) return bounds;
        bounds.off_gpu_transitions = std::max(0.0, 1 - all.stay_on_gpu / all.moves);
        if (input_.nodes > 1)
            bounds.off_node_transitions = std::max(0.0, 1 - all.stay_on_node / all.moves);
        if (input_.gpus > 1) {
            const double pairs = input_.gpus / (input_.gpus - 1.0);
            bounds.heaviest_pair = bounds.off_gpu_transitions * pairs;
            bounds.heaviest_pair_by_layer = all.off_by_layer / all.boundaries * pairs;
        }
        return bounds;
    }

    const PlaceInput& input_;
    const PlaceOptions& options_;
    const ExpertLayout& layout_;
    int slots_;
    Domain gpu_, node_;
};

}  // namespace

double most_gain(std::span<const double> gains, std::span<const double> loads,
                 const PartnerLimits& limits) {
    std::vector<double> values(gains.begin(), gains.end());
    const double free = largest_sum(values, limits.count);
    const double load = std::accumulate(loads.begin(), loads.end(), 0.0);
    if (!std::isfinite(limits.budget) || load <= 0 || free <= 0) return free;
    const auto at_price = [&](double price) {
        for (std::size_t at = 0; at < gains.size(); ++at)
            values[at] = gains[at] - price * loads[at];
        return price * limits.budget + largest_sum(values, limits.count);
    };
    // Convex in the price, and rarely least above twice the mean gain per load of the best: the
    // golden section closes in on it, one price a step.
    constexpr double kGolden = 0.6180339887498949;
    constexpr int kSteps = 9;
    double low = 0;
    double high = 2 * free / std::max(limits.count, 1) * static_cast<double>(loads.size()) / load;
    double left = high - kGolden * (high - low);
    double right = low + kGolden * (high - low);
    double of_left = at_price(left);
    double of_right = at_price(right);
    double least = std::min({free, of_left, of_right});
    for (int step = 0; step < kSteps; ++step) {
        if (of_left < of_right) {
            high = right;
            right = std::exchange(left, right - kGolden * (right - low));
            of_right = std::exchange(of_left, at_price(left));
        } else {
            low = left;
            left = std::exchange(right, left + kGolden * (high - left));
            of_left = std::exchange(of_right, at_price(right));
        }
        least = std::min({least, of_left, of_right});
    }
    return least;
}

// Load: load_bound(); with copies the heaviest item, lightest by those of copies_of().
//
// Distinct domains: a token with n of its experts on a domain counts 1/n for each of them, so
//     D = Σ over experts e, tokens t of e:  1/(1 + x),  x = the token's other experts beside e,
// and 1/(1 + x) ≥ 2/(m + 2) − x/((m + 1)(m + 2)) for every m = 0, 1, … and whole x. The sum of x
// over e's tokens is what e's partners share with it: at most most_gain().
//
// Transitions: an expert keeps what it shares with the experts of the next layer on its domain, at
// most most_gain(); the same seen from the next layer.
//
// Heaviest pair: at least the mean pair, which transitions make at least X·G/(G − 1).

Evaluation lower_bounds(const PlaceInput& input, const PlaceOptions& options,
                        const ExpertLayout& layout) {
    const Bounds bounds(input, options, layout);
    std::vector<Evaluation> found;
    std::vector<double> weights;
    for (const Profile& profile : input.profiles) {
        found.push_back(bounds.of(profile));
        weights.push_back(profile.weight);
    }
    return mean_evaluation(found, weights);
}

}  // namespace moehub
