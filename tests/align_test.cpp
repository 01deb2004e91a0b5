// Is the assignment the best there is, and do tokens stay on their GPU after aligning?

#include "base/rng.hpp"
#include "place/assignment.hpp"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

namespace moehub::align_test {
namespace {

Matrix random_matrix(int rows, int columns, std::uint64_t below, Rng& rng) {
    Matrix matrix(rows, columns);
    for (double& value : matrix.at_)
        value = static_cast<double>(rng.below(below)) - static_cast<double>(below) / 2;
    return matrix;
}

double total(const Matrix& gain, const std::vector<int>& column_of) {
    double sum = 0;
    for (int row = 0; row < gain.rows; ++row)
        sum += gain(row, column_of[static_cast<std::size_t>(row)]);
    return sum;
}

/// By trying all orders of the columns.
double best_total(const Matrix& gain) {
    std::vector<int> order(static_cast<std::size_t>(gain.columns));
    std::iota(order.begin(), order.end(), 0);
    double best = total(gain, order);
    while (std::next_permutation(order.begin(), order.end()))
        best = std::max(best, total(gain, order));
    return best;
}

TEST(Assignment, takes_the_largest_sum_not_the_largest_entry) {
    Matrix gain(2, 2);
    gain.at_ = {10, 9, 9, 1};
    EXPECT_EQ(best_assignment(gain), (std::vector{1, 0}));
}

TEST(Assignment, is_as_good_as_trying_all) {
    Rng rng(7);
    for (int round = 0; round < 300; ++round) {
        const int columns = 1 + static_cast<int>(rng.below(6));
        const int rows = 1 + static_cast<int>(rng.below(static_cast<std::uint64_t>(columns)));
        // Few values: many ties.
        const Matrix gain = random_matrix(rows, columns, round % 2 == 0 ? 4 : 1000, rng);
        const std::vector<int> column_of = best_assignment(gain);
        std::vector<int> sorted = column_of;
        std::sort(sorted.begin(), sorted.end());
        ASSERT_EQ(std::adjacent_find(sorted.begin(), sorted.end()), sorted.end());
        ASSERT_DOUBLE_EQ(total(gain, column_of), best_total(gain)) << "round " << round;
    }
}

TEST(Assignment, finds_a_hidden_order_of_many) {
    Rng rng(3);
    Matrix gain = random_matrix(200, 200, 100, rng);
    std::vector<int> hidden(200);
    std::iota(hidden.begin(), hidden.end(), 0);
    rng.shuffle(hidden);
    for (int row = 0; row < 200; ++row) gain(row, hidden[static_cast<std::size_t>(row)]) = 1000;
    EXPECT_EQ(best_assignment(gain), hidden);
    EXPECT_TRUE(best_assignment(Matrix(0, 0)).empty());
}

ExpertLayout random_layout(int layers, int experts, int gpus, Rng& rng) {
    ExpertLayout layout = empty_layout({layers, experts}, gpus);
    std::vector<int> order(static_cast<std::size_t>(experts));
    std::iota(order.begin(), order.end(), 0);
    for (auto& on : layout.on) {
        rng.shuffle(order);
        for (std::size_t slot = 0; slot < order.size(); ++slot)
            on[slot % static_cast<std::size_t>(gpus)].push_back(order[slot]);
    }
    return layout;
}

double kept(const ExpertLayout& layout, const std::vector<Matrix>& transitions) {
    double sum = 0;
    for (std::size_t layer = 0; layer + 1 < layout.on.size(); ++layer)
        for (std::size_t gpu = 0; gpu < layout.on[layer].size(); ++gpu)
            for (const int from : layout.on[layer][gpu])
                for (const int to : layout.on[layer + 1][gpu]) sum += transitions[layer](from, to);
    return sum;
}

/// The most that any relabelling of all layers keeps, by trying all.
double most_kept(ExpertLayout layout, std::size_t layer, const std::vector<Matrix>& transitions) {
    if (layer == layout.on.size()) return kept(layout, transitions);
    std::vector<std::size_t> label(layout.on[layer].size());
    std::iota(label.begin(), label.end(), 0);
    const auto on = layout.on[layer];
    double best = -1;
    do {
        for (std::size_t gpu = 0; gpu < label.size(); ++gpu) layout.on[layer][gpu] = on[label[gpu]];
        best = std::max(best, most_kept(layout, layer + 1, transitions));
    } while (std::next_permutation(label.begin(), label.end()));
    return best;
}

TEST(Align, keeps_as_much_as_any_relabelling_of_the_chain) {
    Rng rng(11);
    for (int round = 0; round < 10; ++round) {
        ExpertLayout layout = random_layout(4, 6, 3, rng);
        std::vector<Matrix> transitions;
        for (int boundary = 0; boundary < 3; ++boundary) {
            transitions.push_back(random_matrix(6, 6, 50, rng));
            for (double& count : transitions.back().at_) count += 25;
        }
        const ExpertLayout before = layout;
        align(layout, transitions);
        EXPECT_DOUBLE_EQ(kept(layout, transitions), most_kept(before, 0, transitions));
        EXPECT_EQ(layout.on[0], before.on[0]);
        for (std::size_t layer = 0; layer < 4; ++layer)
            EXPECT_TRUE(std::is_permutation(layout.on[layer].begin(), layout.on[layer].end(),
                                            before.on[layer].begin()));
    }
}

TEST(Align, shares_an_expert_with_copies_out) {
    ExpertLayout layout = empty_layout({2, 3}, 2);
    layout.on[0] = {{0, 2}, {1, 2}};
    layout.on[1] = {{0, 0}, {1, 2}};
    std::vector<Matrix> transitions(1, Matrix(3, 3));
    transitions[0](2, 1) = 100;  // from both GPUs alike: decides nothing
    transitions[0](0, 2) = 10;
    align(layout, transitions);
    EXPECT_EQ(layout.on[1], (std::vector<std::vector<int>>{{1, 2}, {0, 0}}));
}

TEST(Align, leaves_a_layout_without_transitions_as_it_is) {
    Rng rng(1);
    ExpertLayout layout = random_layout(3, 4, 2, rng);
    const ExpertLayout before = layout;
    align(layout, {});
    EXPECT_EQ(layout, before);
}

}  // namespace
}  // namespace moehub::align_test
