/// JointProblem: what the joint search works on. Copies, tokens and loads of every layer, and a
/// first GPU for every item that keeps the caps, or comes as near as could be found.
#pragma once
#include "place/methods.hpp"
#include "place/search/search.hpp"

#include <atomic>
#include <chrono>
#include <stop_token>

namespace moehub {

/// How long a search may work. Work is counted in proposals, so that the same options give the same
/// layout on every machine; the clock only ends what takes too long.
class Budget {
  public:
    /// Proposals counted for a second: two cores of a 2.8 GHz Xeon do three times as many.
    static constexpr double kPerSecond = 25e6;

    Budget(double seconds, std::stop_token stop)
        : seconds_(seconds), end_(end_after(seconds)), stop_(std::move(stop)) {}

    double work() const { return seconds_ * kPerSecond; }
    double seconds() const { return seconds_; }
    /// Whether time is over; several threads may ask.
    bool over() const {
        if (!over_.load(std::memory_order_relaxed) &&
            (stop_.stop_requested() || std::chrono::steady_clock::now() >= end_))
            over_.store(true, std::memory_order_relaxed);
        return over_.load(std::memory_order_relaxed);
    }
    /// Whether the search was told to end before it was done.
    bool was_over() const { return over_.load(std::memory_order_relaxed); }

  private:
    double seconds_;
    std::chrono::steady_clock::time_point end_;
    std::stop_token stop_;
    mutable std::atomic<bool> over_{false};
};

class JointProblem {
  public:
    /// The arguments must outlive it.
    JointProblem(const PlaceInput& input, const PlaceOptions& options, const Budget& budget);
    JointProblem(const JointProblem&) = delete;
    JointProblem& operator=(const JointProblem&) = delete;

    int layers() const { return static_cast<int>(loads_.size()); }
    int gpus() const { return input_->gpus; }
    const SearchSpec& spec() const { return spec_; }
    const std::vector<std::string>& notes() const { return notes_; }
    /// The first GPU of every item.
    ItemGpus start() const {
        ItemGpus gpu_of;
        for (const Loads& loads : loads_) gpu_of.push_back(loads.gpu_of());
        return gpu_of;
    }

    /// Where the current layout has the items; none without one, or with other copies.
    std::optional<std::vector<int>> current_gpu_of(int layer) const;
    /// Other, random GPUs within the caps; the first ones where none are found, or with copies.
    std::vector<int> another_start(int layer, Rng& rng) const;
    ItemGpus another_start(Rng& rng) const;

    Search one_layer(int layer) const {
        std::vector<SearchLayer> layers;
        layers.push_back(layer_of(layer));
        return {spec_, std::move(layers)};
    }
    Search all_layers(const Objective& objective) const;
    bool has_tokens() const { return !tokens_.empty(); }
    /// How many experts of the items on GPU g the current layout has on h: [g × h].
    Matrix kept(int layer, const std::vector<int>& gpu_of) const;
    ExpertLayout layout(const ItemGpus& item_gpus) const;

  private:
    void choose_copies();
    void place_first(int layer);
    void relieve_current();
    void note_caps(const std::vector<double>& needed);
    SearchLayer layer_of(int layer) const {
        return {&items_[at(layer)], tokens_.empty() ? nullptr : &tokens_[at(layer)],
                held_.empty() ? nullptr : &held_[at(layer)], loads_[at(layer)]};
    }

    const PlaceInput* input_;
    const PlaceOptions* options_;
    const Budget* budget_;
    SearchSpec spec_;
    std::vector<LayerItems> items_;
    std::vector<HeldExperts> held_;
    std::optional<TokenSample> sample_;
    std::vector<LayerTokens> tokens_;
    std::vector<Loads> loads_;
    std::vector<std::string> notes_;
};

/// The best GPUs found for the items within the budget, started from the problem's first ones.
ItemGpus search_stages(const JointProblem& problem, const PlaceInput& input,
                       const PlaceOptions& options, const Budget& budget);

}  // namespace moehub
