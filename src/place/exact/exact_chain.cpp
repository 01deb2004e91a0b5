// Viterbi's dynamic programme over layers:
//   V_0[p] = cost_0[p],   V_{l+1}[q] = cost_{l+1}[q] + min over p of V_l[p] + pay_l(p, q).
// Names of GPUs cost nothing by themselves, so V is the same within an orbit: p needs to be only
// one placement of each orbit while q is all of them. 8 experts on 4 GPUs: 105 · 2,520 pairs, not
// 2,520². Names are put right at the end, from the first layer on.
#include "place/exact/exact.hpp"

#include <algorithm>
#include <atomic>
#include <limits>
#include <numeric>
#include <thread>

namespace moehub {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// How an orbit of a layer is best reached.
struct Arrival {
    double value = kNever;
    int from = -1;       ///< orbit of the layer before, in the names of its first placement
    int placement = -1;  ///< number of the placement, in the same names
};

/// A layer's allowed placements, those of an orbit side by side.
struct Targets {
    struct Group {
        int orbit, begin, end;
    };
    std::vector<Group> groups;
    std::vector<int> placement;
    std::vector<std::uint16_t> numbers;  ///< number of the set, [placement][gpu]

    Targets(const LayerPlacements& all, const std::vector<double>& cost) {
        for (int number = 0; number < all.size(); ++number)
            if (cost[at(all.orbit(number))] < kNever) placement.push_back(number);
        std::stable_sort(placement.begin(), placement.end(),
                         [&](int a, int b) { return all.orbit(a) < all.orbit(b); });
        for (int index = 0; index < static_cast<int>(placement.size()); ++index) {
            const int orbit = all.orbit(placement[at(index)]);
            if (groups.empty() || groups.back().orbit != orbit)
                groups.push_back({orbit, index, index});
            groups.back().end = index + 1;
            const auto own = all.numbers(placement[at(index)]);
            numbers.insert(numbers.end(), own.begin(), own.end());
        }
    }
};

template <bool largest>
void arrive_from(int from, double before, const Matrix& prices, const Targets& targets,
                 std::vector<Arrival>& found) {
    const auto gpus = at(prices.rows);
    const auto columns = at(prices.columns);
    for (const Targets::Group& group : targets.groups) {
        const std::uint16_t* number = targets.numbers.data() + at(group.begin) * gpus;
        double least = kNever;
        int best = group.begin;
        for (int index = group.begin; index < group.end; ++index, number += gpus) {
            double pay = 0;
            for (std::size_t gpu = 0; gpu < gpus; ++gpu) {
                const double price = prices.at_[gpu * columns + number[gpu]];
                pay = largest ? std::max(pay, price) : pay + price;
            }
            if (pay < least) {
                least = pay;
                best = index;
            }
        }
        Arrival& arrival = found[at(group.orbit)];
        if (before + least < arrival.value)
            arrival = {before + least, from, targets.placement[at(best)]};
    }
}

class ChainSearch {
  public:
    explicit ChainSearch(const ChainTask& task) : task_(task), all_(*task.placements) {}

    ChainResult run() {
        const int layers = static_cast<int>(task_.cost.size());
        auto& first = arrivals_.emplace_back();
        for (int orbit = 0; orbit < all_.orbits(); ++orbit)
            first.push_back({task_.cost[0][at(orbit)], -1, all_.first(orbit)});
        for (int layer = 1; layer < layers; ++layer) {
            if (task_.progress) task_.progress(static_cast<double>(layer) / layers);
            step_to(layer);
        }
        return trace_back();
    }

  private:
    struct Step {
        int layer;
        std::vector<int> sources;
        Targets targets;
    };

    bool too_late() const {
        return task_.stop.stop_requested() || std::chrono::steady_clock::now() >= task_.end;
    }

    /// Orbits of the last layer so far that can be reached, best first: when time runs out, the
    /// rest may go.
    std::vector<int> sources() const {
        const std::vector<Arrival>& last = arrivals_.back();
        std::vector<int> result(at(all_.orbits()));
        std::iota(result.begin(), result.end(), 0);
        std::erase_if(result, [&](int orbit) { return last[at(orbit)].value == kNever; });
        std::stable_sort(result.begin(), result.end(),
                         [&](int a, int b) { return last[at(a)].value < last[at(b)].value; });
        return result;
    }

    /// Arrivals from the sources `begin` … `end` − 1; the first source is never too late.
    std::vector<Arrival> arrive(const Step& step, std::size_t begin, std::size_t end) {
        std::vector<Arrival> found(at(all_.orbits()));
        Matrix prices(all_.shape().gpus, static_cast<int>(all_.sets().size()));
        for (std::size_t turn = begin; turn < end; ++turn) {
            if (turn > 0 && too_late()) {
                cut_short_ = true;
                break;
            }
            const int from = step.sources[turn];
            task_.prices(step.layer - 1, all_.first(from), prices);
            const double before = arrivals_.back()[at(from)].value;
            if (task_.largest)
                arrive_from<true>(from, before, prices, step.targets, found);
            else
                arrive_from<false>(from, before, prices, step.targets, found);
        }
        return found;
    }

    void step_to(int layer) {
        const Step step{layer, sources(), Targets(all_, task_.cost[at(layer)])};
        const std::size_t count = step.sources.size();
        // A thread must be worth its start.
        const std::size_t work = count * step.targets.placement.size() / 1'000'000 + 1;
        const std::size_t threads = std::min({at(std::max(task_.threads, 1)), work, count});
        std::vector<std::vector<Arrival>> found(threads);
        const auto run = [&](std::size_t part) {
            found[part] = arrive(step, part * count / threads, (part + 1) * count / threads);
        };
        {
            std::vector<std::jthread> others;
            for (std::size_t part = 1; part < threads; ++part) others.emplace_back(run, part);
            run(0);
        }
        // Where values are equal the earliest source's, as if there were one thread.
        std::vector<Arrival> here = std::move(found[0]);
        for (std::size_t part = 1; part < threads; ++part)
            for (std::size_t orbit = 0; orbit < here.size(); ++orbit)
                if (found[part][orbit].value < here[orbit].value) here[orbit] = found[part][orbit];
        for (std::size_t orbit = 0; orbit < here.size(); ++orbit)
            here[orbit].value += task_.cost[at(layer)][orbit];
        arrivals_.push_back(std::move(here));
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
        std::vector<int> name(at(all_.shape().gpus));  // names of the GPUs of the layer before
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
    std::vector<std::vector<Arrival>> arrivals_;  ///< best arrival, [layer][orbit]
    std::atomic<bool> cut_short_ = false;
};

/// The best chain with nothing paid between layers: each has its own best.
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
