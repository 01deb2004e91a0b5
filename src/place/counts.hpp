/// What several profiles say together: counts and transitions, weighted.
#pragma once
#include <moehub/expert_layout.hpp>
#include <moehub/profile.hpp>

#include <span>
#include <vector>

namespace moehub {

/// An index, which is never negative.
inline std::size_t at(int index) {
    return static_cast<std::size_t>(index);
}

/// A matrix [row][column], flat.
struct Matrix {
    int rows = 0;
    int columns = 0;
    std::vector<double> at_;

    Matrix() = default;
    Matrix(int r, int c) : rows(r), columns(c), at_(at(r) * at(c)) {}
    double& operator()(int row, int column) { return at_[index(row, column)]; }
    double operator()(int row, int column) const { return at_[index(row, column)]; }
    std::span<const double> row(int number) const {
        return std::span(at_).subspan(index(number, 0), at(columns));
    }

  private:
    std::size_t index(int row, int column) const { return at(row) * at(columns) + at(column); }
};

/// [layer × expert]. Of one profile its counts as they are; of several the shares of each layer's
/// rows, weighted mean.
Matrix together(const std::vector<Profile>& profiles);

/// For each boundary between layers, [expert × expert of the next layer]: how many tokens chose
/// both; every token counts top_k² times. Empty without tokens.
std::vector<Matrix> transitions(const Profile& profile);
/// Of several, each scaled to the same sum first, weighted mean. Empty unless all have tokens.
std::vector<Matrix> transitions(const std::vector<Profile>& profiles);

LayoutShape shape_of(const Profile& profile);

}  // namespace moehub
