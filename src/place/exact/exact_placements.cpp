// Tokens choose sets of at most 16 experts, so a table over all 2^16 sets answers how many tokens
// meet a set: all of them but those that stay within the rest.
#include "place/exact/exact.hpp"
#include "place/search/loads.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>

namespace moehub {

double count_placements(int experts, int gpus) {
    constexpr double kMany = 1e9;
    const int slots = experts / gpus;
    double count = 1;
    // experts! / slots!^gpus, GPU by GPU, expert by expert.
    for (int left = experts; left > slots && count < kMany; left -= slots) {
        double ways = 1;
        for (int slot = 0; slot < slots && ways < kMany; ++slot)
            ways = ways * (left - slot) / (slot + 1);
        count *= ways;
    }
    return count;
}

LayerPlacements::LayerPlacements(const Shape& shape) : shape_(shape) {
    const int slots = shape.experts / shape.gpus;
    const unsigned all = (1U << shape.experts) - 1;
    for (unsigned set = 1; set <= all; ++set)
        if (std::popcount(set) == slots) sets_.push_back(static_cast<ExpertSet>(set));
    std::vector<std::uint16_t> numbers;
    fill(0, all, numbers);
    find_orbits();
}

void LayerPlacements::fill(int gpu, unsigned left, std::vector<std::uint16_t>& numbers) {
    if (gpu == shape_.gpus) {
        numbers_.insert(numbers_.end(), numbers.begin(), numbers.end());
        return;
    }
    for (std::size_t number = 0; number < sets_.size(); ++number) {
        if ((sets_[number] & left) != sets_[number]) continue;
        numbers.push_back(static_cast<std::uint16_t>(number));
        fill(gpu + 1, left & ~unsigned{sets_[number]}, numbers);
        numbers.pop_back();
    }
}

/// A placement with names put in order: within nodes by number of the set, nodes by their first.
std::vector<std::uint16_t> LayerPlacements::canonical(
    std::span<const std::uint16_t> numbers) const {
    std::vector<std::vector<std::uint16_t>> nodes;
    for (int gpu = 0; gpu < shape_.gpus; gpu += gpus_per_node()) {
        const auto begin = numbers.begin() + gpu;
        auto& node = nodes.emplace_back(begin, begin + gpus_per_node());
        std::sort(node.begin(), node.end());
    }
    std::sort(nodes.begin(), nodes.end());
    std::vector<std::uint16_t> joined;
    for (const auto& node : nodes) joined.insert(joined.end(), node.begin(), node.end());
    return joined;
}

void LayerPlacements::find_orbits() {
    const std::size_t count = numbers_.size() / at(shape_.gpus);
    orbit_.reserve(count);
    std::map<std::vector<std::uint16_t>, int> known;
    for (int placement = 0; placement < static_cast<int>(count); ++placement) {
        const auto own = numbers(placement);
        auto key = shape_.named ? std::vector(own.begin(), own.end()) : canonical(own);
        const auto [entry, is_new] = known.try_emplace(std::move(key), orbits());
        if (is_new) first_.push_back(placement);
        orbit_.push_back(entry->second);
    }
}

namespace {

/// Rounding of sums that differ only in their order.
constexpr double kRounding = 1e-9;

unsigned set_of(const Profile& profile, int layer, std::int64_t token) {
    unsigned set = 0;
    for (const std::uint16_t expert : experts_of(profile, layer, token)) set |= 1U << expert;
    return set;
}

/// Tokens of the layer that choose an expert and none outside of the set, by set.
std::vector<double> tokens_within(const Profile& profile, int layer) {
    std::vector<double> within(std::size_t{1} << profile.experts);
    for (std::int64_t token = 0; token < profile.tokens; ++token)
        within[set_of(profile, layer, token)] += 1;
    within[0] = 0;
    for (int expert = 0; expert < profile.experts; ++expert)
        for (std::size_t set = 0; set < within.size(); ++set)
            if (set >> expert & 1U) within[set] += within[set ^ std::size_t{1} << expert];
    return within;
}

/// Sum of the counts of a set's experts, by set.
std::vector<double> set_loads(const std::vector<double>& counts) {
    std::vector<double> loads(std::size_t{1} << counts.size());
    for (std::size_t set = 1; set < loads.size(); ++set)
        loads[set] = loads[set & (set - 1)] + counts[at(std::countr_zero(set))];
    return loads;
}

/// Sets that batches of tokens wake, and how many batches wake each.
std::map<unsigned, double> woken_sets(const Profile& profile, int layer, int batch) {
    std::map<unsigned, double> woken;
    const std::int64_t size = std::min<std::int64_t>(batch, profile.tokens);
    for (std::int64_t from = 0; size > 0 && from + size <= profile.tokens; from += size) {
        unsigned set = 0;
        for (std::int64_t token = from; token < from + size; ++token)
            set |= set_of(profile, layer, token);
        woken[set] += 1;
    }
    return woken;
}

class LayerCosting {
  public:
    LayerCosting(const CostTask& task, int layer)
        : task_(task),
          all_(*task.placements),
          layer_(layer),
          cost_(at(all_.orbits()), 0.0),
          worst_(at(all_.orbits()), 0.0) {
        for (int orbit = 0; orbit < all_.orbits(); ++orbit)
            sets_.push_back(all_.sets_of(all_.first(orbit)));
    }

    void add_load(const LoadView& view, double weight) {
        const std::vector<double> loads = set_loads(view.counts);
        const double mean = loads.back() / all_.shape().gpus;
        for (std::size_t orbit = 0; orbit < cost_.size(); ++orbit) {
            double most = 0;
            for (const ExpertSet set : sets_[orbit]) most = std::max(most, loads[set]);
            const double ratio = mean > 0 ? most / mean : 1;
            cost_[orbit] += weight * ratio;
            if (view.cap > 0) worst_[orbit] = std::max(worst_[orbit], ratio);
        }
    }

    /// Adds what tokens pay for GPUs and nodes they go to: `gpus` and `nodes` for each.
    void add_visits(const Profile& profile, double gpus, double nodes) {
        const std::vector<double> within = tokens_within(profile, layer_);
        const auto meeting = [&](unsigned set) {
            return within.back() - within[(within.size() - 1) ^ set];
        };
        for (std::size_t orbit = 0; orbit < cost_.size(); ++orbit) {
            unsigned on_node = 0;
            for (int gpu = 0; gpu < all_.shape().gpus; ++gpu) {
                const ExpertSet set = sets_[orbit][at(gpu)];
                cost_[orbit] += gpus * meeting(set);
                on_node |= set;
                if ((gpu + 1) % all_.gpus_per_node() != 0) continue;
                cost_[orbit] += nodes * meeting(on_node);
                on_node = 0;
            }
        }
    }

    void add_activated(const Profile& profile, double weight) {
        const auto woken = woken_sets(profile, layer_, task_.options->batch);
        double batches = 0;
        for (const auto& entry : woken) batches += entry.second;
        for (const auto& [awake, times] : woken)
            for (std::size_t orbit = 0; orbit < cost_.size(); ++orbit)
                cost_[orbit] += weight * times / batches * activated_ratio(awake, sets_[orbit]);
    }

    void add_moved(const ExpertLayout& current, double weight) {
        std::vector<unsigned> held;
        for (const auto& experts : current.on[at(layer_)]) {
            unsigned& set = held.emplace_back(0);
            for (const int expert : experts) set |= 1U << expert;
        }
        for (std::size_t orbit = 0; orbit < cost_.size(); ++orbit)
            for (std::size_t gpu = 0; gpu < held.size(); ++gpu)
                cost_[orbit] += weight * std::popcount(sets_[orbit][gpu] & ~held[gpu]);
    }

    /// Forbids what is above the cap; returns the cap where it had to be raised, else 0.
    double keep_cap(double cap) {
        if (!(cap > 0)) return 0;
        const double least = *std::min_element(worst_.begin(), worst_.end());
        const double limit = std::max(cap, least) + kRounding;
        for (std::size_t orbit = 0; orbit < cost_.size(); ++orbit)
            if (worst_[orbit] > limit) cost_[orbit] = std::numeric_limits<double>::infinity();
        return least > cap + kRounding ? least : 0;
    }

    std::vector<double> take() { return std::move(cost_); }

  private:
    double activated_ratio(unsigned awake, const std::vector<ExpertSet>& sets) const {
        if (awake == 0) return 1;
        int most = 0;
        for (const ExpertSet set : sets) most = std::max(most, std::popcount(set & awake));
        return most * static_cast<double>(sets.size()) / std::popcount(awake);
    }

    const CostTask& task_;
    const LayerPlacements& all_;
    int layer_;
    std::vector<double> cost_;                  ///< cost of each orbit
    std::vector<double> worst_;                 ///< by orbit: busiest over mean of the worst view
    std::vector<std::vector<ExpertSet>> sets_;  ///< set of experts, [orbit][gpu]
};

void add_profile(LayerCosting& costing, const Profile& profile, const Objective& objective,
                 const ChoiceTotals& totals, double share) {
    if (!profile.has_tokens()) return;
    if (totals.visits > 0 && (objective.gpus > 0 || objective.nodes > 0))
        costing.add_visits(profile, share * objective.gpus / totals.visits,
                           share * objective.nodes / totals.visits);
    if (objective.activated > 0)
        costing.add_activated(profile, share * objective.activated / profile.layers);
}

}  // namespace

ChoiceTotals choice_totals(const Profile& profile) {
    ChoiceTotals totals;
    const auto choices = [&](int layer, std::int64_t token) {
        return std::popcount(set_of(profile, layer, token));
    };
    for (int layer = 0; layer < profile.layers; ++layer)
        for (std::int64_t token = 0; token < profile.tokens; ++token) {
            const int here = choices(layer, token);
            totals.visits += here > 0 ? 1 : 0;
            if (layer > 0) totals.transitions += choices(layer - 1, token) * here;
        }
    return totals;
}

LayerCosts layer_costs(const CostTask& task, const std::vector<ChoiceTotals>& totals) {
    const PlaceInput& input = *task.input;
    const PlaceOptions& options = *task.options;
    const LoadViews views(input.profiles, options.load_cap, options.load_blocks);
    const int layers = input.profiles.front().layers;
    const double slots = static_cast<double>(layers) * task.placements->shape().experts;
    const double weights = total_weight(input.profiles);
    LayerCosts result;
    for (int layer = 0; layer < layers; ++layer) {
        LayerCosting costing(task, layer);
        for (const LoadView& view : views.of(layer))
            costing.add_load(view, task.objective.load * view.weight / layers);
        for (std::size_t number = 0; number < input.profiles.size(); ++number)
            add_profile(costing, input.profiles[number], task.objective, totals[number],
                        input.profiles[number].weight / weights);
        if (options.current && task.objective.moved > 0)
            costing.add_moved(*options.current, task.objective.moved / slots);
        result.raised_cap.push_back(costing.keep_cap(options.load_cap));
        result.cost.push_back(costing.take());
    }
    return result;
}

}  // namespace moehub
