// What a layout costs, recomputed from the tokens; see Evaluation. No search shares this code.
#include "base/input_error.hpp"
#include "base/parallel.hpp"
#include "place/counts.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

namespace moehub {
namespace {

struct Mean {
    double sum = 0;
    double count = 0;
    void add(double value) {
        sum += value;
        count += 1;
    }
    void add(const Mean& other) {
        sum += other.sum;
        count += other.count;
    }
    double value() const { return count > 0 ? sum / count : 0; }
};

/// Busiest GPU over the mean; 1 where there is no load.
double max_over_mean(const std::vector<double>& loads) {
    double sum = 0;
    double most = 0;
    for (const double load : loads) {
        sum += load;
        most = std::max(most, load);
    }
    return sum > 0 ? most / (sum / static_cast<double>(loads.size())) : 1;
}

/// GPUs of one layer's choices, token by token: [token][slot], −1 where nobody was chosen.
std::vector<int> gpus_of_choices(const Profile& profile, const LayerCopies& copies, int layer) {
    std::vector<int> gpus;
    gpus.reserve(at(profile.tokens * profile.top_k));
    for (std::int64_t token = 0; token < profile.tokens; ++token)
        for (const std::uint16_t expert : profile.chosen_by(layer, token))
            gpus.push_back(expert == Profile::kNobody ? -1 : copies.gpu(expert, token));
    return gpus;
}

/// What one layer, and the boundary after it, says.
struct LayerPart {
    double load = 0;
    Mean gpus, nodes, activated;
    Mean heaviest;  ///< heaviest ordered pair of the boundary after the layer, over an even spread
};

class Evaluator {
  public:
    Evaluator(const Profile& profile, const ExpertLayout& layout, const EvaluateOptions& options)
        : profile_(profile),
          layout_(layout),
          options_(options),
          gpus_per_node_(layout.gpus / options.nodes) {}

    Evaluation run() const {
        std::vector<LayerPart> parts(at(profile_.layers));
        // Whole numbers, so that the order in which layers add theirs does not matter.
        Matrix pairs(layout_.gpus, layout_.gpus);
        std::mutex mutex;
        run_parallel(parts.size(), [&](std::size_t layer) {
            Matrix boundary;
            parts[layer] = part(static_cast<int>(layer), boundary);
            const std::lock_guard lock(mutex);
            add_boundary(boundary, pairs, parts[layer].heaviest);
        });
        return sum(parts, pairs);
    }

  private:
    /// A layer's part; `boundary`: transitions to the next, [GPU × GPU], empty after the last.
    LayerPart part(int layer, Matrix& boundary) const {
        LayerPart part;
        part.load = max_over_mean(gpu_loads(profile_, layout_, layer));
        if (!profile_.has_tokens()) return part;
        const LayerCopies copies(layout_, layer);
        const std::vector<int> here = gpus_of_choices(profile_, copies, layer);
        add_distinct(here, part);
        add_activated(copies, layer, part);
        if (layer + 1 < profile_.layers) {
            const LayerCopies next(layout_, layer + 1);
            boundary = transitions_between(here, gpus_of_choices(profile_, next, layer + 1));
        }
        return part;
    }

    std::span<const int> token_of(const std::vector<int>& gpus, std::int64_t token) const {
        return {gpus.data() + token * profile_.top_k, at(profile_.top_k)};
    }

    void add_distinct(const std::vector<int>& gpus, LayerPart& part) const {
        // The last token that went to a GPU or node, so that it counts once for a token.
        std::vector<std::int64_t> last_gpu(at(layout_.gpus), -1);
        std::vector<std::int64_t> last_node(at(options_.nodes), -1);
        for (std::int64_t token = 0; token < profile_.tokens; ++token) {
            int seen = 0;
            int nodes = 0;
            for (const int gpu : token_of(gpus, token)) {
                if (gpu < 0) continue;
                if (std::exchange(last_gpu[at(gpu)], token) == token) continue;
                ++seen;
                if (std::exchange(last_node[at(gpu / gpus_per_node_)], token) != token) ++nodes;
            }
            if (seen == 0) continue;
            part.gpus.add(seen);
            part.nodes.add(nodes);
        }
    }

    Matrix transitions_between(const std::vector<int>& here, const std::vector<int>& next) const {
        const std::size_t gpus = at(layout_.gpus);
        std::vector<std::uint64_t> counts(gpus * gpus);
        for (std::int64_t token = 0; token < profile_.tokens; ++token)
            for (const int from : token_of(here, token)) {
                if (from < 0) continue;
                for (const int to : token_of(next, token))
                    if (to >= 0) ++counts[at(from) * gpus + at(to)];
            }
        Matrix boundary(layout_.gpus, layout_.gpus);
        std::copy(counts.begin(), counts.end(), boundary.at_.begin());
        return boundary;
    }

    void add_activated(const LayerCopies& copies, int layer, LayerPart& part) const {
        const std::int64_t batch = std::min<std::int64_t>(options_.batch, profile_.tokens);
        std::vector<std::int64_t> seen(at(copies.slots()), -1);  // the last batch that woke a slot
        for (std::int64_t number = 0; (number + 1) * batch <= profile_.tokens; ++number) {
            std::vector<double> awake(at(layout_.gpus));
            for (std::int64_t token = number * batch; token < (number + 1) * batch; ++token)
                for (const std::uint16_t expert : experts_of(profile_, layer, token))
                    if (std::exchange(seen[at(copies.slot(expert, token))], number) != number)
                        awake[at(copies.gpu(expert, token))] += 1;
            part.activated.add(max_over_mean(awake));
        }
    }

    Evaluation sum(const std::vector<LayerPart>& parts, const Matrix& pairs) const {
        Evaluation result;
        Mean load, gpus, nodes, activated, by_layer;
        for (const LayerPart& part : parts) {
            load.add(part.load);
            result.load_worst_layer = std::max(result.load_worst_layer, part.load);
            gpus.add(part.gpus);
            nodes.add(part.nodes);
            activated.add(part.activated);
            by_layer.add(part.heaviest);
        }
        result.load_max_over_mean = load.value();
        result.gpus_per_token = gpus.value();
        result.nodes_per_token = nodes.value();
        result.activated_max_over_mean = activated.value();
        result.heaviest_pair_by_layer = by_layer.value();
        add_pairs(pairs, result);
        if (options_.current) result.moved_experts = moved_experts(*options_.current, layout_);
        return result;
    }

    void add_boundary(const Matrix& boundary, Matrix& pairs, Mean& by_layer) const {
        if (boundary.rows == 0) return;
        double total = 0;
        double most = 0;
        for (int from = 0; from < layout_.gpus; ++from)
            for (int to = 0; to < layout_.gpus; ++to) {
                total += boundary(from, to);
                if (from != to) most = std::max(most, boundary(from, to));
                pairs(from, to) += boundary(from, to);
            }
        if (total > 0) by_layer.add(most / total * layout_.gpus * layout_.gpus);
    }

    void add_pairs(const Matrix& pairs, Evaluation& result) const {
        double total = 0;
        double on_gpu = 0;
        double on_node = 0;
        double heaviest = 0;
        for (int from = 0; from < layout_.gpus; ++from)
            for (int to = 0; to < layout_.gpus; ++to) {
                total += pairs(from, to);
                if (from == to) on_gpu += pairs(from, to);
                if (from / gpus_per_node_ == to / gpus_per_node_) on_node += pairs(from, to);
                if (from < to) heaviest = std::max(heaviest, pairs(from, to) + pairs(to, from));
            }
        if (total <= 0) return;
        result.off_gpu_transitions = 1 - on_gpu / total;
        result.off_node_transitions = 1 - on_node / total;
        result.heaviest_pair = heaviest / 2 / total * layout_.gpus * layout_.gpus;
    }

    const Profile& profile_;
    const ExpertLayout& layout_;
    const EvaluateOptions& options_;
    int gpus_per_node_;
};

}  // namespace

LayerCopies::LayerCopies(const ExpertLayout& layout, int layer) : first_(at(layout.experts) + 1) {
    const auto& gpus = layout.on[at(layer)];
    for (const auto& experts : gpus)
        for (const int expert : experts) ++first_[at(expert) + 1];
    for (std::size_t expert = 1; expert < first_.size(); ++expert)
        first_[expert] += first_[expert - 1];
    gpus_.resize(at(first_.back()));
    std::vector<int> next(first_.begin(), first_.end() - 1);
    for (int gpu = 0; gpu < layout.gpus; ++gpu)
        for (const int expert : gpus[at(gpu)]) gpus_[at(next[at(expert)]++)] = gpu;
}

std::vector<double> gpu_loads(const Profile& profile, const ExpertLayout& layout, int layer) {
    const LayerCopies copies(layout, layer);
    std::vector<double> loads(at(layout.gpus));
    const auto counts = profile.counts_of(layer);
    for (int expert = 0; expert < profile.experts; ++expert)
        for (int copy = 0; copy < copies.of(expert); ++copy)
            loads[at(copies.gpu(expert, copy))] += counts[at(expert)] / copies.of(expert);
    return loads;
}

Evaluation evaluate(const Profile& profile, const ExpertLayout& layout,
                    const EvaluateOptions& options) {
    if (layout.layers() != profile.layers || layout.experts != profile.experts)
        throw input_error("{}: found {} layers of {} experts, allowed: the layout's {} of {}",
                          profile.name, profile.layers, profile.experts, layout.layers(),
                          layout.experts);
    if (options.nodes < 1 || layout.gpus % options.nodes != 0)
        throw input_error("nodes: found {}, allowed: a divisor of {} GPUs", options.nodes,
                          layout.gpus);
    if (options.batch < 1) throw input_error("batch: found {}, allowed: 1 or more", options.batch);
    check(layout, "layout");
    return Evaluator(profile, layout, options).run();
}

}  // namespace moehub
