/// Search: layers of items with a GPU each, what the objective says of them, and how it changes
/// when two items of a layer swap. Places never break a cap that was kept.
///
/// Its energy is the objective times the number of layers of the model, so that the parts of a
/// layer have the same scale whether a search holds one layer or all.
#pragma once
#include "base/rng.hpp"
#include "place/search/chain.hpp"
#include "place/search/loads.hpp"
#include "place/search/spread.hpp"

#include <functional>
#include <optional>

namespace moehub {

/// GPU of every item: [layer][item].
using ItemGpus = std::vector<std::vector<int>>;

/// Experts that a GPU need not fetch: [expert][gpu] of one layer.
struct HeldExperts {
    int gpus = 0;
    std::vector<std::uint8_t> held;
    bool operator()(int expert, int gpu) const {
        return held[at(expert) * at(gpus) + at(gpu)] != 0;
    }
};
HeldExperts held_by(const ExpertLayout& layout, int layer);

/// One layer to search in.
struct SearchLayer {
    const LayerItems* items = nullptr;
    const LayerTokens* tokens = nullptr;  ///< null: only counts are known
    const HeldExperts* held = nullptr;    ///< null: no current layout
    Loads loads;                          ///< loads with the items placed
};

struct SearchSpec {
    Objective objective;
    int gpus = 0;
    int nodes = 1;
    int batch = 64;
    int layers = 0;          ///< layers that the model has
    std::int64_t slots = 0;  ///< slots that all layers have
    std::optional<std::int64_t> max_moves;
};

class Search {
  public:
    Search(const SearchSpec& spec, std::vector<SearchLayer> layers);

    const SearchSpec& spec() const { return spec_; }
    int layers() const { return static_cast<int>(layers_.size()); }
    int items(int layer) const { return static_cast<int>(gpu_of(layer).size()); }
    const std::vector<int>& gpu_of(int layer) const { return layers_[at(layer)].loads.gpu_of(); }
    ItemGpus item_gpus() const {
        ItemGpus item_gpus;
        for (int layer = 0; layer < layers(); ++layer) item_gpus.push_back(gpu_of(layer));
        return item_gpus;
    }
    /// The energy, with a smooth stand-in for the heaviest pair, and with unevenness.
    double energy() const;
    /// The objective, with the heaviest pair itself and without unevenness.
    double objective() const;
    /// Σ of Loads::unevenness(), of weight 0 in the energy at first. Loads within the cap cost
    /// nothing and could stay anywhere; even ones hold better on tokens a search has not seen.
    double unevenness() const {
        double sum = 0;
        for (const Layer& layer : layers_) sum += layer.loads.unevenness();
        return sum;
    }
    void set_evenness(double weight) { evenness_ = weight; }
    /// About what a proposal, and a swap, whose tables take long to mend, cost: in proposals over
    /// distinct GPUs alone.
    double proposal_cost() const;
    double swap_cost() const;
    /// By how much all layers break their caps together.
    double excess() const {
        double sum = 0;
        for (const Layer& layer : layers_) sum += layer.loads.excess();
        return sum;
    }

    struct Swap {
        int layer, a, b;
    };
    /// A bound from below of what the swap adds to the energy; cheap.
    double least_change(const Swap& swap) const;
    bool allows(const Swap& swap) const;
    /// What the swap adds to the energy, exactly.
    double change(const Swap& swap) const;
    void apply(const Swap& swap);

    /// Puts all items on other GPUs.
    void place(const ItemGpus& item_gpus);
    /// Numbers each expert's copies by GPU, as evaluate() does; the places stay.
    void sort_copies();
    /// Relabels GPUs, layer after layer, so that most transitions stay on their GPU; nodes stay
    /// together, and so do the items of a GPU.
    void align();

  private:
    struct Layer : SearchLayer {
        std::optional<Spread> gpus, nodes;
        std::optional<Activated> activated;
    };
    int fetched(const Layer& layer, int item, int gpu) const {
        return layer.held && !(*layer.held)(layer.items->expert[at(item)], gpu) ? 1 : 0;
    }
    int fetched_change(const Swap& swap) const;
    double fixed_change(const Swap& swap) const;
    std::vector<int> node_of(const std::vector<int>& gpu_of) const {
        std::vector<int> nodes;
        for (const int gpu : gpu_of) nodes.push_back(gpu / (spec_.gpus / spec_.nodes));
        return nodes;
    }
    void build();

    SearchSpec spec_;
    std::vector<Layer> layers_;
    std::optional<Chain> chain_, node_chain_;
    std::int64_t moved_ = 0;
    double evenness_ = 0;
    double per_token_ = 0;  ///< one over the weight of all tokens
};

// Simulated annealing over swaps: a swap that adds d to the energy is taken with probability
// exp(−d/T), T falling from hot to cold (Kirkpatrick, Gelatt, Vecchi 1983).

struct Schedule {
    double work = 0;  ///< Search::proposal_cost() of proposals, and swap_cost() of swaps taken
    double hot = 0;   ///< temperature at the start, in mean changes of a random swap
    double cold = 0;  ///< temperature at the end
};

/// Anneals; ends early, with false, when `stopped`, which is asked now and then, says so.
bool anneal(Search& search, const Schedule& schedule, Rng& rng,
            const std::function<bool()>& stopped);

/// Takes every swap that lowers the energy until there is none.
bool descend(Search& search, const std::function<bool()>& stopped);

}  // namespace moehub
