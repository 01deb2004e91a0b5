// MoETuner's second integer program (arXiv 2502.06643):
//   min Σ_l m_l,   m_l ≥ B[g,h] · Σ_{c,d} C_l[c,d] · y_l[c,g] · y_{l+1}[d,h]   for all g ≠ h,
//   y_l one to one in every layer;  Σ_l Σ_c size_l[c] · y_l[c,g] ≤ memory.
// Products become z_l[c,g,d,h] ≥ 0 in the tight form of assignment problems (Adams, Johnson 1994):
//   Σ_d z = Σ_h z = y_l[c,g],   Σ_c z = Σ_g z = y_{l+1}[d,h],
// so that whole y make whole z and the z need no switches of their own.
#include "place/moetuner/ilp.hpp"
#include "place/moetuner/moetuner.hpp"

#include <limits>
#include <numeric>

namespace moehub {
namespace {

using Terms = std::vector<IntegerProgram::Term>;

constexpr double kAny = std::numeric_limits<double>::infinity();

class LabelProgram {
  public:
    explicit LabelProgram(const LabelTask& task)
        : task_(task),
          gpus_(task.gpus),
          layers_(static_cast<int>(task.sizes.size())),
          scale_(scale(task)) {
        for (int column = 0; column < layers_ * gpus_ * gpus_; ++column) program_.add_switch(0);
        for (int layer = 0; layer < layers_; ++layer) add_one_to_one(layer);
        for (int boundary = 0; boundary + 1 < layers_; ++boundary) add_boundary(boundary);
        if (!equal_sizes(task)) add_memory();
        // GPUs have no names: any renaming that keeps nodes together costs the same.
        for (int gpu = 0; gpu < (task.nodes == 1 ? gpus_ : 1); ++gpu)
            program_.fix(y(0, gpu, gpu), 1);
    }

    LabelResult solve(const Labels& start, const LabelLimits& limits) const {
        const Labels named = renamed(start);
        const auto found = program_.solve({.nodes = limits.nodes,
                                           .simplex_steps = limits.simplex_steps,
                                           .seconds = limits.seconds,
                                           .relative_gap = kPaperTolerance,
                                           .strong_branching = false,
                                           .stop = limits.stop},
                                          columns_of(named));
        LabelResult result{named, found.proven, found.cut_short};
        for (int layer = 0; layer < layers_; ++layer)
            for (int c = 0; c < gpus_; ++c)
                for (int g = 0; g < gpus_; ++g)
                    if (found.values[at(y(layer, c, g))] > 0.5) result.labels[at(layer)][at(g)] = c;
        return result;
    }

  private:
    int y(int layer, int cluster, int gpu) const { return (layer * gpus_ + cluster) * gpus_ + gpu; }
    /// Column of z; the products of the boundary begin at column `first`.
    int z(int first, int c, int g, int d, int h) const {
        return first + ((c * gpus_ + g) * gpus_ + d) * gpus_ + h;
    }
    /// Factor that brings boundaries near 1: solvers like that.
    static double scale(const LabelTask& task) {
        double sum = 0;
        for (const Matrix& traffic : task.traffic)
            sum += std::accumulate(traffic.at_.begin(), traffic.at_.end(), 0.0);
        const double pairs = static_cast<double>(task.traffic.size()) * task.gpus * task.gpus;
        return sum > 0 ? pairs / sum : 1;
    }

    void add_one_to_one(int layer) {
        for (int one = 0; one < gpus_; ++one) {
            Terms of_cluster, of_gpu;
            for (int other = 0; other < gpus_; ++other) {
                of_cluster.push_back({y(layer, one, other), 1});
                of_gpu.push_back({y(layer, other, one), 1});
            }
            program_.add_equal(1, std::move(of_cluster));
            program_.add_equal(1, std::move(of_gpu));
        }
    }

    void add_boundary(int boundary) {
        const int first = program_.columns();
        for (int product = 0; product < gpus_ * gpus_ * gpus_ * gpus_; ++product)
            program_.add_number(0, kAny, 0);
        const int heaviest = program_.add_number(0, kAny, 1);
        for (int cluster = 0; cluster < gpus_; ++cluster)
            for (int gpu = 0; gpu < gpus_; ++gpu)
                for (int fixed = 0; fixed < gpus_; ++fixed)
                    add_product_rows(boundary, first, {cluster, gpu, fixed});
        for (int g = 0; g < gpus_; ++g)
            for (int h = 0; h < gpus_; ++h) {
                if (g == h) continue;
                Terms terms{{heaviest, -1}};
                for (int c = 0; c < gpus_; ++c)
                    for (int d = 0; d < gpus_; ++d)
                        terms.push_back(
                            {z(first, c, g, d, h), task_.traffic[at(boundary)](c, d) * scale_ *
                                                       weight_of_pair(task_, g, h)});
                program_.add_row(-kAny, 0, std::move(terms));
            }
    }

    struct Corner {
        int cluster, gpu, fixed;
    };
    /// Adds four sums that equal y of `cluster` on `gpu`: as the layer before and the one after.
    void add_product_rows(int boundary, int first, const Corner& corner) {
        const auto [c, g, fixed] = corner;
        Terms rows[4];
        for (int free = 0; free < gpus_; ++free) {
            rows[0].push_back({z(first, c, g, free, fixed), 1});
            rows[1].push_back({z(first, c, g, fixed, free), 1});
            rows[2].push_back({z(first, free, fixed, c, g), 1});
            rows[3].push_back({z(first, fixed, free, c, g), 1});
        }
        for (int row = 0; row < 4; ++row) {
            rows[row].push_back({y(row < 2 ? boundary : boundary + 1, c, g), -1});
            program_.add_equal(0, std::move(rows[row]));
        }
    }

    void add_memory() {
        for (int gpu = 0; gpu < gpus_; ++gpu) {
            Terms terms;
            for (int layer = 0; layer < layers_; ++layer)
                for (int c = 0; c < gpus_; ++c)
                    terms.push_back(
                        {y(layer, c, gpu), static_cast<double>(task_.sizes[at(layer)][at(c)])});
            program_.add_row(0, memory_of_gpu(task_), std::move(terms));
        }
    }

    /// `labels` with GPUs renamed so that layer 0 is what the program has fixed.
    Labels renamed(const Labels& labels) const {
        std::vector<int> order(at(gpus_));  // new name → old name
        std::iota(order.begin(), order.end(), 0);
        if (task_.nodes == 1) {
            for (int gpu = 0; gpu < gpus_; ++gpu) order[at(labels[0][at(gpu)])] = gpu;
        } else {
            int gpu = 0;
            while (labels[0][at(gpu)] != 0) ++gpu;
            const int each = gpus_ / task_.nodes;
            for (int i = 0; i < each; ++i)
                std::swap(order[at(i)], order[at(gpu / each * each + i)]);
            std::swap(order[0], order[at(gpu % each)]);
        }
        Labels result = labels;
        for (std::size_t layer = 0; layer < labels.size(); ++layer)
            for (int gpu = 0; gpu < gpus_; ++gpu)
                result[layer][at(gpu)] = labels[layer][at(order[at(gpu)])];
        return result;
    }

    std::vector<double> columns_of(const Labels& labels) const {
        std::vector<double> values(at(program_.columns()));
        for (int layer = 0; layer < layers_; ++layer)
            for (int g = 0; g < gpus_; ++g) values[at(y(layer, labels[at(layer)][at(g)], g))] = 1;
        const int products = gpus_ * gpus_ * gpus_ * gpus_;
        int first = layers_ * gpus_ * gpus_;
        for (int boundary = 0; boundary + 1 < layers_; ++boundary, first += products + 1) {
            const auto& before = labels[at(boundary)];
            const auto& after = labels[at(boundary + 1)];
            for (int g = 0; g < gpus_; ++g)
                for (int h = 0; h < gpus_; ++h)
                    values[at(z(first, before[at(g)], g, after[at(h)], h))] = 1;
            values[at(first + products)] = heaviest_pair(task_, boundary, before, after) * scale_;
        }
        return values;
    }

    const LabelTask& task_;
    int gpus_;
    int layers_;
    double scale_;
    IntegerProgram program_;
};

}  // namespace

std::int64_t label_products(const LabelTask& task) {
    const std::int64_t gpus = task.gpus;
    return static_cast<std::int64_t>(task.traffic.size()) * gpus * gpus * gpus * gpus;
}

LabelResult labels_by_program(const LabelTask& task, const Labels& start,
                              const LabelLimits& limits) {
    return LabelProgram(task).solve(start, limits);
}

}  // namespace moehub
