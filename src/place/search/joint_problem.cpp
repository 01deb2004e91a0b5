#include "place/search/joint_problem.hpp"

#include "base/parallel.hpp"
#include "place/counts.hpp"
#include "place/eplb.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace moehub {
namespace {

/// Tokens that a search looks at. On traces of 100,000 tokens 2,000 overfit and 8,000 do not.
constexpr std::int64_t kMostTokens = 16384;

/// Where a layout has a layer's items; copies of an expert by GPU.
std::vector<int> gpus_in(const ExpertLayout& layout, int layer, const LayerItems& items) {
    std::vector<int> gpu_of(at(items.size()));
    std::vector<int> next(items.first.begin(), items.first.end() - 1);
    for (int gpu = 0; gpu < layout.gpus; ++gpu)
        for (const int expert : layout.on[at(layer)][at(gpu)]) gpu_of[at(next[at(expert)]++)] = gpu;
    return gpu_of;
}

std::vector<int> copies_in(const ExpertLayout& layout, int layer) {
    std::vector<int> copies(at(layout.experts));
    for (const auto& experts : layout.on[at(layer)])
        for (const int expert : experts) ++copies[at(expert)];
    return copies;
}

bool all_have_tokens(const std::vector<Profile>& profiles) {
    return std::all_of(profiles.begin(), profiles.end(),
                       [](const Profile& profile) { return profile.has_tokens(); });
}

}  // namespace

JointProblem::JointProblem(const PlaceInput& input, const PlaceOptions& options,
                           const Budget& budget)
    : input_(&input), options_(&options), budget_(&budget) {
    const Profile& first = input.profiles.front();
    spec_ = {*options.objective, input.gpus,
             input.nodes,        options.batch,
             first.layers,       std::int64_t{first.layers} * (first.experts + input.redundant),
             options.max_moves};
    choose_copies();
    if (options.current)
        for (int layer = 0; layer < first.layers; ++layer)
            held_.push_back(held_by(*options.current, layer));
    if (all_have_tokens(input.profiles)) {
        sample_.emplace(input.profiles, kMostTokens);
        for (int layer = 0; layer < first.layers; ++layer)
            tokens_.emplace_back(input.profiles, *sample_, items_[at(layer)], layer);
    }
    const LoadViews views(input.profiles, options.load_cap, options.load_blocks);
    for (int layer = 0; layer < first.layers; ++layer)
        loads_.emplace_back(views.of(layer), items_[at(layer)], input.gpus);
    run_parallel(at(first.layers),
                 [this](std::size_t layer) { place_first(static_cast<int>(layer)); },
                 {options.threads, {}});
    if (options.max_moves) relieve_current();
    std::vector<double> needed;
    for (Loads& loads : loads_) needed.push_back(loads.give_in());
    note_caps(needed);
}

void JointProblem::choose_copies() {
    const Matrix weights = together(input_->profiles);
    for (int layer = 0; layer < weights.rows; ++layer) {
        items_.push_back(
            items_of(options_->max_moves
                         ? copies_in(*options_->current, layer)
                         : copies_of(weights.row(layer), weights.columns + input_->redundant)));
    }
}

/// Longest processing time, then swaps; with few moves the current GPUs.
void JointProblem::place_first(int layer) {
    Loads& loads = loads_[at(layer)];
    if (options_->max_moves) {
        loads.place(gpus_in(*options_->current, layer, items_[at(layer)]));
        return;
    }
    const Matrix weights = together(input_->profiles);
    const auto row = weights.row(layer);
    loads.place(longest_first({row.begin(), row.end()}, items_[at(layer)], gpus()));
    Rng rng(options_->seed, at(layer));
    const auto over = [this] { return budget_->over(); };
    if (spec_.objective.load > 0) loads.lower(rng, over);
    loads.keep_caps(rng, over);
}

/// Moves go to the layer whose caps are broken most, as long as there are any.
void JointProblem::relieve_current() {
    std::int64_t left = *options_->max_moves;
    std::vector<bool> done(loads_.size());
    while (left >= 2 && !budget_->over()) {
        int worst = -1;
        for (int layer = 0; layer < layers(); ++layer)
            if (!done[at(layer)] && loads_[at(layer)].excess() > 0 &&
                (worst < 0 || loads_[at(layer)].excess() > loads_[at(worst)].excess()))
                worst = layer;
        if (worst < 0) return;
        if (loads_[at(worst)].relieve())
            left -= 2;
        else
            done[at(worst)] = true;
    }
}

void JointProblem::note_caps(const std::vector<double>& needed) {
    int broken = 0;
    int worst = 0;
    for (int layer = 0; layer < layers(); ++layer) {
        if (needed[at(layer)] <= 0) continue;
        ++broken;
        if (needed[at(layer)] > needed[at(worst)] || needed[at(worst)] <= 0) worst = layer;
    }
    if (broken == 0) return;
    notes_.push_back(
        fmt::format("the load cap {} was not kept in {} of {} layers{}; the highest is {:.3f} "
                    "in layer {}",
                    options_->load_cap, broken, layers(),
                    options_->max_moves      ? " with so few moves"
                    : input_->redundant == 0 ? " without copies (--replicas)"
                                             : "",
                    needed[at(worst)],
                    input_->profiles.front().layer_numbers.empty()
                        ? worst
                        : input_->profiles.front().layer_numbers[at(worst)]));
}

ItemGpus JointProblem::start() const {
    ItemGpus gpu_of;
    for (const Loads& loads : loads_) gpu_of.push_back(loads.gpu_of());
    return gpu_of;
}

std::optional<std::vector<int>> JointProblem::current_gpu_of(int layer) const {
    if (!options_->current) return {};
    const LayerItems& items = items_[at(layer)];
    const std::vector<int> copies = copies_in(*options_->current, layer);
    for (int expert = 0; expert < static_cast<int>(copies.size()); ++expert)
        if (copies[at(expert)] != items.copies(expert)) return {};
    if (slots_per_gpu(*options_->current) == 0) return {};
    return gpus_in(*options_->current, layer, items);
}

std::vector<int> JointProblem::another_start(int layer, Rng& rng) const {
    Loads loads = loads_[at(layer)];
    std::vector<int> gpu_of = loads.gpu_of();
    if (input_->redundant > 0) return gpu_of;
    rng.shuffle(gpu_of);
    loads.place(gpu_of);
    return loads.keep_caps(rng, [this] { return budget_->over(); }) ? loads.gpu_of()
                                                                    : loads_[at(layer)].gpu_of();
}

ItemGpus JointProblem::another_start(Rng& rng) const {
    ItemGpus item_gpus;
    for (int layer = 0; layer < layers(); ++layer) item_gpus.push_back(another_start(layer, rng));
    return item_gpus;
}

SearchLayer JointProblem::layer_of(int layer) const {
    return {&items_[at(layer)], tokens_.empty() ? nullptr : &tokens_[at(layer)],
            held_.empty() ? nullptr : &held_[at(layer)], loads_[at(layer)]};
}

Search JointProblem::one_layer(int layer) const {
    std::vector<SearchLayer> layers;
    layers.push_back(layer_of(layer));
    return {spec_, std::move(layers)};
}

Search JointProblem::all_layers(const Objective& objective) const {
    std::vector<SearchLayer> all;
    for (int layer = 0; layer < layers(); ++layer) all.push_back(layer_of(layer));
    SearchSpec spec = spec_;
    spec.objective = objective;
    return {spec, std::move(all)};
}

Matrix JointProblem::kept(int layer, const std::vector<int>& gpu_of) const {
    Matrix kept(gpus(), gpus());
    for (std::size_t item = 0; item < gpu_of.size(); ++item)
        for (int gpu = 0; gpu < gpus(); ++gpu)
            if (held_[at(layer)](items_[at(layer)].expert[item], gpu)) kept(gpu_of[item], gpu) += 1;
    return kept;
}

ExpertLayout JointProblem::layout(const ItemGpus& item_gpus) const {
    ExpertLayout layout = empty_layout(shape_of(input_->profiles.front()), gpus());
    for (int layer = 0; layer < layers(); ++layer)
        for (int item = 0; item < items_[at(layer)].size(); ++item)
            layout.on[at(layer)][at(item_gpus[at(layer)][at(item)])].push_back(
                items_[at(layer)].expert[at(item)]);
    return layout;
}

}  // namespace moehub
