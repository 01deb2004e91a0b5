// Transitions kept on a GPU, summed over the chain of layers:
//     Σ_l Σ_g K_l(p_l(g), p_{l+1}(g)),    K_l(a, b) = transitions from experts of a to those of b,
// p_l the relabelling of layer l. Each term depends on p_{l+1} relative to p_l only, and that is
// free at every boundary: the best assignment of each boundary in turn is the best of the chain.
#include "place/align.hpp"

#include "place/assignment.hpp"

#include <utility>

namespace moehub {
namespace {

struct Part {
    int gpu = 0;
    double share = 1;
};

/// [expert] → the GPUs it is on, with the share of its tokens that each gets.
std::vector<std::vector<Part>> parts(const std::vector<std::vector<int>>& on, int experts) {
    std::vector<std::vector<Part>> all(static_cast<std::size_t>(experts));
    for (std::size_t gpu = 0; gpu < on.size(); ++gpu)
        for (const int expert : on[gpu]) {
            auto& own = all[static_cast<std::size_t>(expert)];
            // A second copy on the same GPU draws no further tokens to it.
            if (own.empty() || own.back().gpu != static_cast<int>(gpu))
                own.push_back({static_cast<int>(gpu), 1});
        }
    for (auto& own : all)
        for (Part& part : own) part.share = 1 / static_cast<double>(own.size());
    return all;
}

/// [GPU of the next layer × GPU of this layer] transitions between them.
Matrix between_gpus(const ExpertLayout& layout, std::size_t layer, const Matrix& transitions) {
    const auto from = parts(layout.on[layer], layout.experts);
    const auto to = parts(layout.on[layer + 1], layout.experts);
    Matrix gain(layout.gpus, layout.gpus);
    for (int first = 0; first < layout.experts; ++first)
        for (int second = 0; second < layout.experts; ++second) {
            const double count = transitions(first, second);
            if (count == 0) continue;
            for (const Part& a : from[static_cast<std::size_t>(first)])
                for (const Part& b : to[static_cast<std::size_t>(second)])
                    gain(b.gpu, a.gpu) += count * a.share * b.share;
        }
    return gain;
}

}  // namespace

void align(ExpertLayout& layout, const std::vector<Matrix>& transitions) {
    for (std::size_t layer = 0; layer + 1 < layout.on.size() && layer < transitions.size();
         ++layer) {
        const std::vector<int> label =
            best_assignment(between_gpus(layout, layer, transitions[layer]));
        auto& on = layout.on[layer + 1];
        std::vector<std::vector<int>> relabelled(on.size());
        for (std::size_t gpu = 0; gpu < on.size(); ++gpu)
            relabelled[static_cast<std::size_t>(label[gpu])] = std::move(on[gpu]);
        on = std::move(relabelled);
    }
}

}  // namespace moehub
