/// JointProblem: what the joint search works on. Copies, tokens and loads of every layer, and a
/// first GPU for every item that keeps the caps, or comes as near as could be found.
#pragma once
#include "place/search/budget.hpp"
#include "place/search/search.hpp"

namespace moehub {

class JointProblem {
  public:
    /// All of them are kept.
    JointProblem(const PlaceInput& input, const PlaceOptions& options, const Budget& budget);
    JointProblem(const JointProblem&) = delete;
    JointProblem& operator=(const JointProblem&) = delete;

    int layers() const { return static_cast<int>(loads_.size()); }
    int gpus() const { return input_->gpus; }
    const SearchSpec& spec() const { return spec_; }
    const std::vector<std::string>& notes() const { return notes_; }
    /// The first GPUs.
    ItemGpus start() const;

    /// Where the current layout has the items; none without one, or with other copies.
    std::optional<std::vector<int>> current_gpu_of(int layer) const;
    /// Other GPUs within the caps, random; the first ones where none are found, or with copies.
    std::vector<int> another_start(int layer, Rng& rng) const;
    ItemGpus another_start(Rng& rng) const;

    Search one_layer(int layer) const;
    Search all_layers(const Objective& objective) const;
    bool has_tokens() const { return !tokens_.empty(); }
    /// Of the items on GPU g, how many experts the current layout has on h: [g × h].
    Matrix kept(int layer, const std::vector<int>& gpu_of) const;
    ExpertLayout layout(const ItemGpus& item_gpus) const;

  private:
    void choose_copies();
    void place_first(int layer);
    void relieve_current();
    void note_caps(const std::vector<double>& needed);
    SearchLayer layer_of(int layer) const;

    const PlaceInput* input_;
    const PlaceOptions* options_;
    const Budget* budget_;
    SearchSpec spec_;
    std::vector<LayerItems> items_;
    std::vector<Held> held_;
    std::optional<TokenSample> sample_;
    std::vector<LayerTokens> tokens_;
    std::vector<Loads> loads_;
    std::vector<std::string> notes_;
};

}  // namespace moehub
