// MoETuner (arXiv 2502.06643): first clusters of even load in every layer, then a GPU for every
// cluster so that the heaviest pair of GPUs between two layers is light.
#include "place/moetuner/moetuner.hpp"

#include "base/input_error.hpp"
#include "place/methods.hpp"

#include <utility>

namespace moehub {
namespace {

/// What CBC does in a second at the least, on slow machines too. Searches are limited by this and
/// not by the clock, so that the same input gives the same layout.
constexpr double kWorkPerSecond = 60'000;  // nodes times switches of a BalanceTask
constexpr double kPairsPerSecond = 20e6;   // pairs of GPUs of a LabelTask; more is possible
constexpr double kNodesPerSecond = 100;
constexpr double kSimplexStepsPerSecond = 1'000;
/// Most products: beyond, the first relaxation takes longer than the default time limit: 4 GPUs and
/// 16 layers have 3,840 products and take 5 s.
constexpr std::int64_t kMostProducts = 2'000;

void refuse_what_is_not_possible(const PlaceInput& input, const PlaceOptions& options) {
    const int experts = input.profiles.front().experts;
    if (input.redundant > 0) throw InputError("moetuner: found --replicas, allowed: none");
    if (experts < input.gpus || (!options.unequal && experts % input.gpus != 0))
        throw input_error("moetuner: found {} experts on {} GPUs, allowed: {}", experts, input.gpus,
                          options.unequal ? "at least one for each GPU" : "as many on every GPU");
}

class MoeTuner {
  public:
    MoeTuner(const PlaceInput& input, const PlaceOptions& options)
        : input_(input), options_(options), seconds_(std::min(options.time_limit, 1e6)) {}

    Solution solve() {
        const LayoutShape shape = shape_of(input_.profiles.front());
        solution_.layout = empty_layout(shape, input_.gpus);
        find_clusters();
        const Labels labels = find_labels();
        for (int layer = 0; layer < shape.layers; ++layer)
            for (int gpu = 0; gpu < input_.gpus; ++gpu)
                solution_.layout.on[at(layer)][at(gpu)] =
                    clusters_[at(layer)][at(labels[at(layer)][at(gpu)])];
        report(1);
        return std::move(solution_);
    }

  private:
    double left(double until) const {
        return until -
               std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    }
    void report(double share) const {
        if (options_.progress) options_.progress(share, 0);
    }
    template <class... Values>
    void note(fmt::format_string<Values...> text, Values&&... values) {
        solution_.notes.push_back(fmt::format(text, std::forward<Values>(values)...));
    }

    /// Finds clusters. What a layer leaves of its share of half the time goes to those after it.
    void find_clusters() {
        const Matrix counts = together(input_.profiles);
        auto work = static_cast<std::int64_t>(seconds_ / 2 * kWorkPerSecond);
        int unproven = 0;
        int too_large = 0;
        for (int layer = 0; layer < counts.rows; ++layer) {
            const int layers_left = counts.rows - layer;
            const std::span load(&counts.at_[at(layer) * at(counts.columns)], at(counts.columns));
            BalancedClusters found = balanced_clusters({.load = load,
                                                        .clusters = input_.gpus,
                                                        .unequal = options_.unequal,
                                                        .work = work / layers_left,
                                                        .seconds = left(seconds_ / 2) / layers_left,
                                                        .stop = options_.stop});
            work = std::max<std::int64_t>(work - found.work, 0);
            clusters_.push_back(std::move(found.experts));
            too_large += found.too_large ? 1 : 0;
            unproven += found.proven || found.too_large ? 0 : 1;
            solution_.cut_short |= found.cut_short;
            report((layer + 1.0) / counts.rows / 2);
        }
        if (too_large > 0)
            note(
                "moetuner: {} of {} layers are too large for the first integer "
                "program: longest first and swaps instead",
                too_large, counts.rows);
        if (unproven > 0)
            note("moetuner: {} of {} layers: the load is not proven to be the most even", unproven,
                 counts.rows);
    }

    Labels find_labels() {
        LabelTask task{.traffic = {},
                       .sizes = {},
                       .gpus = input_.gpus,
                       .nodes = input_.nodes,
                       .seed = options_.seed,
                       .work = static_cast<std::int64_t>(seconds_ * kPairsPerSecond)};
        for (const auto& clusters : clusters_) {
            auto& sizes = task.sizes.emplace_back();
            for (const auto& experts : clusters) sizes.push_back(static_cast<int>(experts.size()));
        }
        const std::vector<Matrix> moves = transitions(input_.profiles);
        for (std::size_t boundary = 0; boundary < moves.size(); ++boundary)
            task.traffic.push_back(between_clusters(moves[boundary], boundary));
        if (task.traffic.empty()) {
            if (clusters_.size() > 1)
                note(
                    "moetuner: counts only: without tokens the second integer program has nothing "
                    "to minimise");
            // No traffic: nothing to match, but memory is still shared out.
            task.traffic.assign(clusters_.size() - 1, Matrix(input_.gpus, input_.gpus));
            return matched_labels(task);
        }
        return best_labels(task);
    }

    /// Transitions between clusters, [cluster × cluster of the next layer].
    Matrix between_clusters(const Matrix& moves, std::size_t boundary) const {
        Matrix sum(input_.gpus, input_.gpus);
        for (int from = 0; from < input_.gpus; ++from)
            for (int to = 0; to < input_.gpus; ++to)
                for (const int expert : clusters_[boundary][at(from)])
                    for (const int next : clusters_[boundary + 1][at(to)])
                        sum(from, to) += moves(expert, next);
        return sum;
    }

    Labels best_labels(const LabelTask& task) {
        const Labels start = matched_labels(task);
        if (matching_is_optimal(task)) return start;
        const double share = std::max(left(seconds_), 0.0);
        LabelLimits limits{.nodes = static_cast<int>(seconds_ / 2 * kNodesPerSecond),
                           .simplex_steps = static_cast<int>(seconds_ / 2 * kSimplexStepsPerSecond),
                           .seconds = share,
                           .stop = options_.stop};
        if (equal_sizes(task) && task.gpus <= kMostChainedGpus)
            return settle(task, labels_by_chain(task, limits), start);
        const Labels searched = labels_by_search(task, start, options_.stop);
        solution_.cut_short |= options_.stop.stop_requested();
        if (label_products(task) > kMostProducts) {
            note(
                "moetuner: the second integer program would have {} products, at most "
                "{} are solved: local search on the same objective instead",
                label_products(task), kMostProducts);
            return searched;
        }
        return settle(task, labels_by_program(task, searched, limits), searched);
    }

    Labels settle(const LabelTask& task, LabelResult found, const Labels& start) {
        solution_.cut_short |= found.cut_short;
        if (!found.proven)
            note("moetuner: the second integer program is not proven to be at its best");
        return heaviest_pairs(task, found.labels) < heaviest_pairs(task, start) ? found.labels
                                                                                : start;
    }

    const PlaceInput& input_;
    const PlaceOptions& options_;
    double seconds_;
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
    std::vector<std::vector<std::vector<int>>> clusters_;  ///< experts, [layer][cluster]
    Solution solution_;
};

}  // namespace

Solution solve_moetuner(const PlaceInput& input, const PlaceOptions& options) {
    refuse_what_is_not_possible(input, options);
    return MoeTuner(input, options).solve();
}

}  // namespace moehub
