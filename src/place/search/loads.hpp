/// Loads of a layer's GPUs under a cap, in every view of the load at once: each profile, and each
/// block of its tokens where asked for.
#pragma once
#include "base/rng.hpp"
#include "place/search/items.hpp"

#include <functional>

namespace moehub {

/// One way to look at a layer's load.
struct LoadView {
    std::vector<double> counts;  ///< count of each expert
    double cap = 0;              ///< most that the busiest GPU may have over the mean; 0: no cap
    double weight = 0;           ///< weight in the objective of its busiest GPU over the mean
};

/// Views of a layer: every profile (weights add up to 1), and `blocks` runs of each.
class LoadViews {
  public:
    LoadViews(const std::vector<Profile>& profiles, double cap, int blocks);
    std::vector<LoadView> of(int layer) const;

  private:
    const std::vector<Profile>* profiles_;
    double cap_;
    double weights_ = 0;
    std::vector<std::vector<std::vector<double>>> blocks_;  ///< counts by [profile][block]
};

class Loads {
  public:
    /// `items` must outlive it.
    Loads(const std::vector<LoadView>& views, const LayerItems& items, int gpus);

    /// Places the items; called before all else.
    void place(const std::vector<int>& gpu_of);
    const std::vector<int>& gpu_of() const { return gpu_of_; }
    int views() const { return static_cast<int>(views_); }

    /// Whether a swap is allowed: no GPU of the two goes above the cap, or above the fuller one
    /// where that is above it; none gets a second copy of an expert.
    bool allows(int a, int b) const;
    void swap(int a, int b);

    /// Busiest GPU over the mean, by the views' weights; and how a swap changes it.
    double value() const;
    double change(int a, int b) const;

    /// How uneven GPUs are: the variance of their loads over the mean's square, by the views'
    /// weights; and how a swap changes it.
    double unevenness() const;
    double unevenness_change(int a, int b) const;

    /// Swaps items until every cap is kept, nothing helps or time is over; true when kept.
    bool keep_caps(Rng& rng, const std::function<bool()>& over);
    /// Takes the best swap off the worst GPU; false when none helps.
    bool relieve() { return best_swap_from(worst_gpu()); }
    /// Swaps items to bring the busiest GPU as near to the mean as can be found.
    void lower(Rng& rng, const std::function<bool()>& over);
    /// Raises broken caps to what the items' places need. Returns the largest ratio needed.
    double give_in();
    /// By how much caps are broken, squares summed; 0 when kept.
    double excess() const;

  private:
    double load(int item, std::size_t view) const { return loads_[at(item) * views_ + view]; }
    double gpu(int index, std::size_t view) const { return sums_[at(index) * views_ + view]; }
    bool meets_copy(int item, int gpu) const;
    double excess_of(int gpu, int less, int more) const;
    bool best_swap_from(int gpu);
    int worst_gpu() const;

    const LayerItems* items_;
    std::size_t views_;
    int gpus_;
    std::vector<double> loads_;    ///< load of each item, [item][view], in means of a GPU
    std::vector<double> caps_;     ///< cap of each view
    std::vector<double> weights_;  ///< weight of each view
    std::vector<int> gpu_of_;
    std::vector<double> sums_;  ///< load of each GPU, [gpu][view]
};

/// GPU of each item: heaviest first, each to the GPU with the least load that has a slot and no
/// copy of the expert (a copy where there is no other): longest processing time, equal counts.
std::vector<int> longest_first(const std::vector<double>& counts, const LayerItems& items,
                               int gpus);

}  // namespace moehub
