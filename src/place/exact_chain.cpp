// Viterbi's dynamic programme over layers:
//   V_0[p] = cost_0[p],   V_{l+1}[q] = cost_{l+1}[q] + min over p of V_l[p] + pay_l(p, q).
// Names of GPUs cost nothing by themselves, so V is the same within an orbit: p needs to be only
// one placement of each orbit while q is all of them. 8 experts on 4 GPUs: 105 · 2,520 pairs, not
// 2,520². Names are put right at the end, from the first layer on.
#include "place/exact_chain.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace moehub {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

std::size_t at(int index) {
    return static_cast<std::size_t>(index);
}

/// How an orbit of a layer is best reached.
struct Arrival {
    double value = kNever;
    int from = -1;       ///< orbit of the layer before, in the names of its first placement
    int placement = -1;  ///< in the same names
};

class ChainSearch {
  public:
    explicit ChainSearch(const ChainTask& task)
        : task_(task),
          all_(*task.placements),
          prices_(all_.shape().gpus, static_cast<int>(all_.sets().size())) {}

    ChainResult run() {
        const int layers = static_cast<int>(task_.cost.size());
        auto& first = arrivals_.emplace_back();
        for (int orbit = 0; orbit < all_.orbits(); ++orbit)
            first.push_back({task_.cost[0][at(orbit)], -1, all_.first(orbit)});
        for (int layer = 1; layer < layers; ++layer) {
            if (task_.progress) task_.progress(static_cast<double>(layer) / layers);
            step(layer);
        }
        return trace_back();
    }

  private:
    bool too_late() const {
        return task_.stop.stop_requested() || std::chrono::steady_clock::now() >= task_.end;
    }

    /// Placements of the layer that are allowed.
    std::vector<int> allowed(int layer) const {
        std::vector<int> result;
        for (int placement = 0; placement < all_.size(); ++placement)
            if (task_.cost[at(layer)][at(all_.orbit(placement))] < kNever)
                result.push_back(placement);
        return result;
    }

    void step(int layer) {
        const std::vector<Arrival>& before = arrivals_.back();
        std::vector<int> sources(at(all_.orbits()));
        std::iota(sources.begin(), sources.end(), 0);
        std::erase_if(sources, [&](int orbit) { return before[at(orbit)].value == kNever; });
        // Best first: when time runs out, the rest may go.
        std::stable_sort(sources.begin(), sources.end(),
                         [&](int a, int b) { return before[at(a)].value < before[at(b)].value; });
        const std::vector<int> targets = allowed(layer);
        std::vector<Arrival> here(at(all_.orbits()));
        for (const int from : sources) {
            if (from != sources.front() && too_late()) {
                cut_short_ = true;
                break;
            }
            task_.prices(layer - 1, all_.first(from), prices_);
            for (const int placement : targets) {
                const double value = before[at(from)].value + pay(placement);
                Arrival& arrival = here[at(all_.orbit(placement))];
                if (value < arrival.value) arrival = {value, from, placement};
            }
        }
        for (int orbit = 0; orbit < all_.orbits(); ++orbit)
            here[at(orbit)].value += task_.cost[at(layer)][at(orbit)];
        arrivals_.push_back(std::move(here));
    }

    double pay(int placement) const {
        const double* price = prices_.at_.data();
        double sum = 0;
        double most = 0;
        for (const std::uint16_t number : all_.numbers(placement)) {
            sum += price[number];
            most = std::max(most, price[number]);
            price += prices_.columns;
        }
        return task_.largest ? most : sum;
    }

    ChainResult trace_back() const {
        const auto& last = arrivals_.back();
        const auto best =
            std::min_element(last.begin(), last.end(),
                             [](const Arrival& a, const Arrival& b) { return a.value < b.value; });
        std::vector<int> orbits{static_cast<int>(best - last.begin())};
        for (std::size_t layer = arrivals_.size() - 1; layer > 0; --layer)
            orbits.push_back(arrivals_[layer][at(orbits.back())].from);
        std::reverse(orbits.begin(), orbits.end());
        return {with_names(orbits), best->value, cut_short_};
    }

    std::vector<std::vector<ExpertSet>> with_names(const std::vector<int>& orbits) const {
        std::vector<std::vector<ExpertSet>> result;
        std::vector<int> name(at(all_.shape().gpus));  // of the GPUs of the layer before
        std::iota(name.begin(), name.end(), 0);
        for (std::size_t layer = 0; layer < orbits.size(); ++layer) {
            const Arrival& arrival = arrivals_[layer][at(orbits[layer])];
            const std::vector<ExpertSet> sets = all_.sets_of(arrival.placement);
            auto& named = result.emplace_back(sets.size());
            for (std::size_t gpu = 0; gpu < sets.size(); ++gpu) named[at(name[gpu])] = sets[gpu];
            // The next layer was reached from the orbit's first placement: who holds its sets here?
            const std::vector<ExpertSet> first = all_.sets_of(all_.first(orbits[layer]));
            for (std::size_t gpu = 0; gpu < first.size(); ++gpu)
                name[gpu] = static_cast<int>(std::find(named.begin(), named.end(), first[gpu]) -
                                             named.begin());
        }
        return result;
    }

    const ChainTask& task_;
    const LayerPlacements& all_;
    Matrix prices_;
    std::vector<std::vector<Arrival>> arrivals_;  ///< [layer][orbit]
    bool cut_short_ = false;
};

/// Nothing between layers: each has its own best.
ChainResult each_best(const ChainTask& task) {
    ChainResult result;
    for (const auto& cost : task.cost) {
        const auto best = std::min_element(cost.begin(), cost.end());
        result.value += *best;
        result.sets.push_back(task.placements->sets_of(
            task.placements->first(static_cast<int>(best - cost.begin()))));
    }
    return result;
}

}  // namespace

ChainResult best_chain(const ChainTask& task) {
    return task.prices ? ChainSearch(task).run() : each_best(task);
}

}  // namespace moehub
