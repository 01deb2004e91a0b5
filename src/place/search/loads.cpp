#include "place/search/loads.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace moehub {
namespace {

/// Rounding of sums that differ only in their order.
constexpr double kRounding = 1e-9;

double square(double value) {
    return value > 0 ? value * value : 0;
}

}  // namespace

LoadViews::LoadViews(const std::vector<Profile>& profiles, double cap, int blocks)
    : profiles_(&profiles), cap_(cap) {
    for (const Profile& profile : profiles) {
        weights_ += profile.weight;
        blocks_.push_back(blocks > 1 ? block_counts(profile, blocks)
                                     : std::vector<std::vector<double>>{});
    }
}

std::vector<LoadView> LoadViews::of(int layer) const {
    std::vector<LoadView> views;
    for (std::size_t at = 0; at < profiles_->size(); ++at) {
        const Profile& profile = (*profiles_)[at];
        const auto counts = profile.counts_of(layer);
        views.push_back({{counts.begin(), counts.end()}, cap_, profile.weight / weights_});
        for (const std::vector<double>& block : blocks_[at]) {
            const auto begin = block.begin() + std::ptrdiff_t{layer} * profile.experts;
            views.push_back({{begin, begin + profile.experts}, cap_, 0});
        }
    }
    return views;
}

Loads::Loads(const std::vector<LoadView>& views, const LayerItems& items, int gpus)
    : items_(&items), views_(views.size()), gpus_(gpus), loads_(at(items.size()) * views_) {
    for (std::size_t view = 0; view < views_; ++view) {
        const auto& counts = views[view].counts;
        const double mean = std::accumulate(counts.begin(), counts.end(), 0.0) / gpus;
        caps_.push_back(views[view].cap > 0 ? views[view].cap + kRounding
                                            : std::numeric_limits<double>::infinity());
        weights_.push_back(views[view].weight);
        for (int item = 0; item < items.size(); ++item) {
            const int expert = items.expert[at(item)];
            loads_[at(item) * views_ + view] =
                mean > 0 ? counts[at(expert)] / items.copies(expert) / mean : 0;
        }
    }
}

void Loads::place(const std::vector<int>& gpu_of) {
    gpu_of_ = gpu_of;
    sums_.assign(at(gpus_) * views_, 0.0);
    for (std::size_t item = 0; item < gpu_of_.size(); ++item)
        for (std::size_t view = 0; view < views_; ++view)
            sums_[at(gpu_of_[item]) * views_ + view] += loads_[item * views_ + view];
}

bool Loads::meets_copy(int item, int index) const {
    const int expert = items_->expert[at(item)];
    if (items_->copies(expert) == 1) return false;
    for (int copy = items_->first[at(expert)]; copy < items_->first[at(expert) + 1]; ++copy)
        if (gpu_of_[at(copy)] == index) return true;
    return false;
}

bool Loads::allows(int a, int b) const {
    if (meets_copy(a, gpu_of_[at(b)]) || meets_copy(b, gpu_of_[at(a)])) return false;
    for (std::size_t view = 0; view < views_; ++view) {
        const double shift = load(b, view) - load(a, view);
        const double from = gpu(gpu_of_[at(a)], view);
        const double to = gpu(gpu_of_[at(b)], view);
        const double most = std::max({caps_[view], from, to});
        if (from + shift > most || to - shift > most) return false;
    }
    return true;
}

void Loads::swap(int a, int b) {
    for (std::size_t view = 0; view < views_; ++view) {
        const double shift = load(b, view) - load(a, view);
        sums_[at(gpu_of_[at(a)]) * views_ + view] += shift;
        sums_[at(gpu_of_[at(b)]) * views_ + view] -= shift;
    }
    std::swap(gpu_of_[at(a)], gpu_of_[at(b)]);
}

double Loads::value() const {
    double sum = 0;
    for (std::size_t view = 0; view < views_; ++view) {
        if (weights_[view] <= 0) continue;
        double most = 0;
        for (int index = 0; index < gpus_; ++index) most = std::max(most, gpu(index, view));
        sum += weights_[view] * most;
    }
    return sum;
}

double Loads::change(int a, int b) const {
    double sum = 0;
    const int from = gpu_of_[at(a)];
    const int to = gpu_of_[at(b)];
    for (std::size_t view = 0; view < views_; ++view) {
        if (weights_[view] <= 0) continue;
        const double shift = load(b, view) - load(a, view);
        double others = 0;
        for (int index = 0; index < gpus_; ++index)
            if (index != from && index != to) others = std::max(others, gpu(index, view));
        sum +=
            weights_[view] * (std::max({others, gpu(from, view) + shift, gpu(to, view) - shift}) -
                              std::max({others, gpu(from, view), gpu(to, view)}));
    }
    return sum;
}

double Loads::unevenness() const {
    double sum = 0;
    for (std::size_t view = 0; view < views_; ++view)
        for (int index = 0; index < gpus_; ++index)
            sum += weights_[view] * (gpu(index, view) - 1) * (gpu(index, view) - 1);
    return sum / gpus_;
}

double Loads::unevenness_change(int a, int b) const {
    double sum = 0;
    for (std::size_t view = 0; view < views_; ++view) {
        const double shift = load(b, view) - load(a, view);
        const double apart = gpu(gpu_of_[at(a)], view) - gpu(gpu_of_[at(b)], view);
        sum += weights_[view] * 2 * shift * (apart + shift);
    }
    return sum / gpus_;
}

double Loads::excess() const {
    double sum = 0;
    for (int index = 0; index < gpus_; ++index)
        for (std::size_t view = 0; view < views_; ++view)
            sum += square(gpu(index, view) - caps_[view]);
    return sum;
}

/// By how much a GPU breaks its caps with item `less` gone and `more` come; −1: none.
double Loads::excess_of(int index, int less, int more) const {
    double sum = 0;
    for (std::size_t view = 0; view < views_; ++view) {
        double total = gpu(index, view);
        if (less >= 0) total -= load(less, view);
        if (more >= 0) total += load(more, view);
        sum += square(total - caps_[view]);
    }
    return sum;
}

int Loads::worst_gpu() const {
    int worst = 0;
    for (int index = 1; index < gpus_; ++index)
        if (excess_of(index, -1, -1) > excess_of(worst, -1, -1)) worst = index;
    return worst;
}

bool Loads::best_swap_from(int index) {
    double best = -kRounding;  // less is rounding, and two swaps could undo each other for ever
    int mine = -1;
    int other = -1;
    const double here = excess_of(index, -1, -1);
    const int items = static_cast<int>(gpu_of_.size());
    for (int b = 0; b < items; ++b) {
        if (gpu_of_[at(b)] == index) continue;
        const double there = excess_of(gpu_of_[at(b)], -1, -1);
        for (int a = 0; a < items; ++a) {
            if (gpu_of_[at(a)] != index) continue;
            const double change =
                excess_of(index, a, b) + excess_of(gpu_of_[at(b)], b, a) - here - there;
            if (change >= best || meets_copy(a, gpu_of_[at(b)]) || meets_copy(b, index)) continue;
            best = change;
            mine = a;
            other = b;
        }
    }
    if (mine < 0) return false;
    swap(mine, other);
    return true;
}

bool Loads::keep_caps(Rng& rng, const std::function<bool()>& over) {
    constexpr int kKicks = 40;
    std::vector<int> best = gpu_of_;
    double least = excess();
    for (int kick = 0; least > 0; ++kick) {
        while (!over() && excess() > 0 && best_swap_from(worst_gpu())) {
        }
        if (excess() < least) {
            least = excess();
            best = gpu_of_;
        }
        if (least <= 0 || kick == kKicks || over()) break;
        place(best);
        // A few random swaps lead out of a local optimum.
        for (int swaps = 0; swaps < 3; ++swaps) {
            const int a = static_cast<int>(rng.below(gpu_of_.size()));
            const int b = static_cast<int>(rng.below(gpu_of_.size()));
            if (!meets_copy(a, gpu_of_[at(b)]) && !meets_copy(b, gpu_of_[at(a)])) swap(a, b);
        }
    }
    place(best);
    return least <= 0;
}

void Loads::lower(Rng& rng, const std::function<bool()>& over) {
    const std::vector<double> caps = caps_;
    // Squares of what lies above the mean, in what the objective sees: as even as it goes.
    for (std::size_t view = 0; view < views_; ++view)
        caps_[view] = weights_[view] > 0 ? 1.0 : std::numeric_limits<double>::infinity();
    keep_caps(rng, over);
    caps_ = caps;
}

double Loads::give_in() {
    double needed = 0;
    for (std::size_t view = 0; view < views_; ++view)
        for (int index = 0; index < gpus_; ++index) {
            if (gpu(index, view) <= caps_[view]) continue;
            caps_[view] = gpu(index, view) + kRounding;
            needed = std::max(needed, gpu(index, view));
        }
    return needed;
}

std::vector<int> longest_first(const std::vector<double>& counts, const LayerItems& items,
                               int gpus) {
    const auto index = [](int value) { return at(value); };
    std::vector<int> order(index(items.size()));
    std::iota(order.begin(), order.end(), 0);
    const auto load = [&](int item) {
        const int expert = items.expert[index(item)];
        return counts[index(expert)] / items.copies(expert);
    };
    std::stable_sort(order.begin(), order.end(),
                     [&](int left, int right) { return load(left) > load(right); });
    std::vector<int> gpu_of(order.size(), -1);
    std::vector<double> loads(index(gpus));
    std::vector<int> free(index(gpus), items.size() / gpus);
    const auto holds = [&](int gpu, int expert) {
        for (int item = items.first[index(expert)]; item < items.first[index(expert) + 1]; ++item)
            if (gpu_of[index(item)] == gpu) return true;
        return false;
    };
    for (const int item : order) {
        int best = -1;
        for (const bool again : {false, true}) {
            for (int gpu = 0; gpu < gpus; ++gpu)
                if (free[index(gpu)] > 0 && (again || !holds(gpu, items.expert[index(item)])) &&
                    (best < 0 || loads[index(gpu)] < loads[index(best)]))
                    best = gpu;
            if (best >= 0) break;
        }
        gpu_of[index(item)] = best;
        loads[index(best)] += load(item);
        --free[index(best)];
    }
    return gpu_of;
}

}  // namespace moehub
