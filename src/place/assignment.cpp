// The Hungarian method by shortest augmenting paths (Kuhn 1955; Jonker, Volgenant 1987): prices u
// of rows and v of columns keep the reduced cost
//     c(r,k) = −gain(r,k) − u(r) − v(k) ≥ 0,    = 0 on chosen pairs,
// so that the chosen pairs are the best for the rows they cover. Rows are added one by one: a path
// of least reduced cost from the new row to a free column changes the choices along it.
#include "place/assignment.hpp"

#include <limits>
#include <utility>

namespace moehub {
namespace {

constexpr int kNone = -1;

class Assignment {
  public:
    explicit Assignment(const Matrix& gain)
        : gain_(gain),
          columns_(at(gain.columns)),
          row_price_(at(gain.rows), 0.0),
          column_price_(columns_, 0.0),
          row_of_(columns_, kNone) {}

    std::vector<int> solve() {
        for (int row = 0; row < gain_.rows; ++row) add(row);
        std::vector<int> column_of(at(gain_.rows), kNone);
        for (std::size_t column = 0; column < columns_; ++column)
            if (row_of_[column] != kNone) column_of[at(row_of_[column])] = static_cast<int>(column);
        return column_of;
    }

  private:
    struct Reach {
        double cost = std::numeric_limits<double>::infinity();
        int from = kNone;  ///< column before it on the path; kNone: the new row itself
        bool done = false;
    };

    double reduced_cost(int row, std::size_t column) const {
        return -gain_(row, static_cast<int>(column)) - row_price_[at(row)] - column_price_[column];
    }

    void add(int row) {
        std::vector<Reach> reach(columns_);
        double length = 0;
        int at = kNone;
        for (int from_row = row; from_row != kNone;) {
            extend(reach, from_row, at, length);
            at = nearest(reach);
            length = reach[static_cast<std::size_t>(at)].cost;
            reach[static_cast<std::size_t>(at)].done = true;
            from_row = row_of_[static_cast<std::size_t>(at)];
        }
        reprice(reach, row, length);
        for (int column = at; column != kNone;) {
            const int before = reach[static_cast<std::size_t>(column)].from;
            row_of_[static_cast<std::size_t>(column)] =
                before == kNone ? row : row_of_[static_cast<std::size_t>(before)];
            column = before;
        }
    }

    /// Adds paths that reach `row` through its column `at` and go on to the columns not done yet.
    void extend(std::vector<Reach>& reach, int row, int at, double length) const {
        for (std::size_t column = 0; column < columns_; ++column) {
            if (reach[column].done) continue;
            const double cost = length + reduced_cost(row, column);
            if (cost < reach[column].cost) {
                reach[column].cost = cost;
                reach[column].from = at;
            }
        }
    }

    int nearest(const std::vector<Reach>& reach) const {
        int best = kNone;
        for (std::size_t column = 0; column < columns_; ++column)
            if (!reach[column].done && (best == kNone || reach[column].cost < reach[at(best)].cost))
                best = static_cast<int>(column);
        return best;
    }

    /// Moves prices of the rows chosen so far; comes before the choices change.
    void reprice(const std::vector<Reach>& reach, int row, double length) {
        row_price_[at(row)] += length;
        for (std::size_t column = 0; column < columns_; ++column) {
            if (!reach[column].done) continue;
            const double slack = length - reach[column].cost;
            column_price_[column] -= slack;
            if (row_of_[column] != kNone) row_price_[at(row_of_[column])] += slack;
        }
    }

    const Matrix& gain_;
    std::size_t columns_;
    std::vector<double> row_price_, column_price_;
    std::vector<int> row_of_;  ///< row of each column
};

Matrix block(const Matrix& gain, int size, int from, int to) {
    Matrix part(size, size);
    for (int row = 0; row < size; ++row)
        for (int column = 0; column < size; ++column)
            part(row, column) = gain(from * size + row, to * size + column);
    return part;
}

struct Part {
    int gpu = 0;
    double share = 1;
};

/// GPUs of each expert, with the share of its tokens that each gets.
std::vector<std::vector<Part>> parts(const std::vector<std::vector<int>>& on, int experts) {
    std::vector<std::vector<Part>> all(at(experts));
    for (std::size_t gpu = 0; gpu < on.size(); ++gpu)
        for (const int expert : on[gpu]) {
            auto& own = all[at(expert)];
            // A second copy on the same GPU draws no further tokens to it.
            if (own.empty() || own.back().gpu != static_cast<int>(gpu))
                own.push_back({static_cast<int>(gpu), 1});
        }
    for (auto& own : all)
        for (Part& part : own) part.share = 1 / static_cast<double>(own.size());
    return all;
}

/// Transitions between GPUs, [GPU of the next layer × GPU of this layer].
Matrix between_gpus(const ExpertLayout& layout, std::size_t layer, const Matrix& transitions) {
    const auto from = parts(layout.on[layer], layout.experts);
    const auto to = parts(layout.on[layer + 1], layout.experts);
    Matrix gain(layout.gpus, layout.gpus);
    for (int first = 0; first < layout.experts; ++first)
        for (int second = 0; second < layout.experts; ++second) {
            const double count = transitions(first, second);
            if (count == 0) continue;
            for (const Part& a : from[at(first)])
                for (const Part& b : to[at(second)])
                    gain(b.gpu, a.gpu) += count * a.share * b.share;
        }
    return gain;
}

}  // namespace

std::vector<int> best_assignment(const Matrix& gain) {
    return Assignment(gain).solve();
}

std::vector<int> best_labels(const Matrix& gain, int nodes) {
    const int size = gain.rows / nodes;
    Matrix of_nodes(nodes, nodes);
    std::vector<std::vector<int>> inner;  // [from × to]
    for (int from = 0; from < nodes; ++from)
        for (int to = 0; to < nodes; ++to) {
            const Matrix part = block(gain, size, from, to);
            const std::vector<int>& labels = inner.emplace_back(best_assignment(part));
            for (int row = 0; row < size; ++row) of_nodes(from, to) += part(row, labels[at(row)]);
        }
    const std::vector<int> node_of = best_assignment(of_nodes);
    std::vector<int> labels;
    for (int node = 0; node < nodes; ++node) {
        const int to = node_of[at(node)];
        for (const int gpu : inner[at(node * nodes + to)]) labels.push_back(to * size + gpu);
    }
    return labels;
}

// Transitions kept on a GPU, summed over the chain of layers:
//     Σ_l Σ_g K_l(p_l(g), p_{l+1}(g)),    K_l(a, b) = transitions from experts of a to those of b,
// p_l the relabelling of layer l. Each term depends on p_{l+1} relative to p_l only, and that is
// free at every boundary: the best assignment of each boundary in turn is the best of the chain.
void align(ExpertLayout& layout, const std::vector<Matrix>& transitions) {
    for (std::size_t layer = 0; layer + 1 < layout.on.size() && layer < transitions.size();
         ++layer) {
        const std::vector<int> label =
            best_assignment(between_gpus(layout, layer, transitions[layer]));
        auto& on = layout.on[layer + 1];
        std::vector<std::vector<int>> relabelled(on.size());
        for (std::size_t gpu = 0; gpu < on.size(); ++gpu)
            relabelled[at(label[gpu])] = std::move(on[gpu]);
        on = std::move(relabelled);
    }
}

}  // namespace moehub
