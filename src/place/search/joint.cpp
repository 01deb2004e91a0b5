// The joint method: all that the objective names at once. Where a layer's placements can be gone
// through, the exact method; otherwise copies by weight, a start by longest processing time under
// the caps, and the search of stages.cpp.
#include "base/parallel.hpp"
#include "base/portable_math.hpp"
#include "place/assignment.hpp"
#include "place/eplb.hpp"
#include "place/exact/exact.hpp"
#include "place/search/joint_problem.hpp"

#include <limits>
#include <numeric>

#include <fmt/format.h>

namespace moehub {
namespace {

/// The better layout: by how far caps are broken in the worst layer of any profile, then by the
/// objective. Copies that meet on one GPU serve EPLB now and then, and the search avoids them.
Solution better_of(Solution found, Solution other, const PlaceInput& input,
                   const PlaceOptions& options) {
    const auto cost = [&](const ExpertLayout& layout) {
        double broken = 0;
        for (const Profile& profile : input.profiles)
            broken = std::max(
                broken,
                evaluate(profile, layout, {input.nodes, options.batch, nullptr}).load_worst_layer -
                    options.load_cap);
        constexpr double kRounding =
            1e-6;  // what the search keeps may lie a rounding above the cap
        if (options.load_cap <= 0 || broken < kRounding) broken = 0;
        const std::vector<double> values = values_of(input, options, layout);
        return std::pair(broken, std::accumulate(values.begin(), values.end(), 0.0));
    };
    if (options.max_moves || cost(found.layout) <= cost(other.layout)) return found;
    other.cut_short = found.cut_short;
    return other;
}

Solution solve_once(const PlaceInput& input, const PlaceOptions& options, const Budget& budget) {
    const JointProblem problem(input, options, budget);
    const ItemGpus item_gpus = search_stages(problem, input, options, budget);
    return {problem.layout(item_gpus), {}, budget.was_over(), problem.notes()};
}

/// Solves for the worst profile, not the mean: several searches, each with more weight on what the
/// last one left behind (multiplicative weights); the best by its worst profile.
Solution solve_for_worst(PlaceInput input, PlaceOptions options) {
    constexpr int kRounds = 4;
    constexpr double kStep = 8;  // added to the exponent per share above the mean
    options.time_limit /= kRounds;
    Solution best;
    double least = std::numeric_limits<double>::infinity();
    for (int round = 0; round < kRounds; ++round) {
        const Budget budget(options.time_limit, options.stop);
        Solution found = solve_once(input, options, budget);
        const std::vector<double> values = values_of(input, options, found.layout);
        const double worst = *std::max_element(values.begin(), values.end());
        const double mean =
            std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
        for (std::size_t at = 0; at < values.size() && mean > 0; ++at)
            input.profiles[at].weight *= portable_exp(kStep * (values[at] / mean - 1));
        const bool cut_short = best.cut_short || found.cut_short;
        if (worst < least) {
            least = worst;
            best = std::move(found);
        }
        best.cut_short = cut_short;
        if (options.stop.stop_requested()) break;
    }
    return best;
}

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

}  // namespace

Solution search_jointly(const PlaceInput& input, const PlaceOptions& options) {
    PlaceOptions all = options;
    if (!all.objective) all.objective = usual_objective(input);
    if (options.worst_profile && input.profiles.size() > 1) return solve_for_worst(input, all);
    return solve_once(input, all, Budget(options.time_limit, options.stop));
}

Solution solve_joint(const PlaceInput& input, const PlaceOptions& options) {
    // 8 experts on 4 GPUs; so many the exact method goes through in less than a second.
    constexpr double kFew = 2520;
    const Objective want = options.objective.value_or(usual_objective(input));
    if (input.redundant == 0 && !options.max_moves && !options.worst_profile && want.pair <= 0 &&
        (!options.current || want.moved > 0) &&
        count_placements(input.profiles.front().experts, input.gpus) <= kFew) {
        Solution best = solve_exact(input, options);
        // Labels cost such an objective nothing; others gain when tokens stay on their GPU.
        const std::vector<Matrix> moves = transitions(input.profiles);
        const bool free = want.transitions <= 0 && want.node_transitions <= 0 && input.nodes == 1 &&
                          !options.current;
        if (free && !moves.empty()) align(best.layout, moves);
        if (!best.cut_short) return best;
    }
    Solution found = search_jointly(input, options);
    return input.redundant > 0 ? better_of(found, solve_eplb(input, options), input, options)
                               : found;
}

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

/// Places a layer first: longest processing time, then swaps; with few moves on the current GPUs.
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

/// Spends moves on the layer whose caps are broken most, as long as there are any.
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
    notes_.push_back(fmt::format(
        "the load cap {} was not kept in {} of {} layers{}; the highest is {:.3f} in layer {}",
        options_->load_cap, broken, layers(),
        options_->max_moves      ? " with so few moves"
        : input_->redundant == 0 ? " without copies (--replicas)"
                                 : "",
        needed[at(worst)], number_of(input_->profiles.front(), worst)));
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
