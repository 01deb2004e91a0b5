#include "place/search/relabel.hpp"

#include "place/assignment.hpp"

namespace moehub {
namespace {

Matrix block(const Matrix& gain, int size, int from, int to) {
    Matrix part(size, size);
    for (int row = 0; row < size; ++row)
        for (int column = 0; column < size; ++column)
            part(row, column) = gain(from * size + row, to * size + column);
    return part;
}

}  // namespace

std::vector<int> best_labels(const Matrix& gain, int nodes) {
    const int size = gain.rows / nodes;
    Matrix of_nodes(nodes, nodes);
    std::vector<std::vector<int>> inner;  // [from × to]
    for (int from = 0; from < nodes; ++from)
        for (int to = 0; to < nodes; ++to) {
            const Matrix part = block(gain, size, from, to);
            const std::vector<int>& labels = inner.emplace_back(best_assignment(part));
            for (int row = 0; row < size; ++row)
                of_nodes(from, to) += part(row, labels[static_cast<std::size_t>(row)]);
        }
    const std::vector<int> node_of = best_assignment(of_nodes);
    std::vector<int> labels;
    for (int node = 0; node < nodes; ++node) {
        const int to = node_of[static_cast<std::size_t>(node)];
        for (const int gpu : inner[static_cast<std::size_t>(node * nodes + to)])
            labels.push_back(to * size + gpu);
    }
    return labels;
}

}  // namespace moehub
