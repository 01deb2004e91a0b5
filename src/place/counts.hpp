/// What profiles and layouts say, as numbers: counts and transitions of several profiles, weighted;
/// copies of experts, and the loads that follow.
#pragma once
#include <moehub/expert_layout.hpp>
#include <moehub/place.hpp>
#include <moehub/profile.hpp>

#include <concepts>
#include <cstdint>
#include <span>
#include <vector>

namespace moehub {

/// An index, which is never negative.
inline std::size_t at(std::integral auto index) {
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

/// Adds `part`, scaled to the sum `share` where it has one.
void add_scaled(Matrix& whole, const Matrix& part, double share);

double sum_of(std::span<const double> values);
double total_weight(const std::vector<Profile>& profiles);
bool all_have_tokens(const std::vector<Profile>& profiles);

/// The experts that a token chose in a layer, nobody left out. A range of its own, because clang 14
/// cannot filter by <ranges>.
struct ExpertsOf {
    struct Iterator {
        const std::uint16_t* at;
        const std::uint16_t* end;
        Iterator& operator++() {
            do ++at;
            while (at != end && *at == Profile::kNobody);
            return *this;
        }
        std::uint16_t operator*() const { return *at; }
        bool operator!=(const Iterator& other) const { return at != other.at; }
    };
    std::span<const std::uint16_t> chosen;

    Iterator end() const { return {chosen.data() + chosen.size(), chosen.data() + chosen.size()}; }
    Iterator begin() const {
        const std::uint16_t* first = chosen.data();
        while (first != end().at && *first == Profile::kNobody) ++first;
        return {first, end().at};
    }
};
inline ExpertsOf experts_of(const Profile& profile, int layer, std::int64_t token) {
    return {profile.chosen_by(layer, token)};
}

/// Counts [layer × expert]: one profile's as they are; of several the weighted mean of each
/// expert's share of the layer's rows.
Matrix together(const std::vector<Profile>& profiles);

/// For each boundary between layers, [expert × expert of the next layer]: how many tokens chose
/// both; every token counts top_k² times. Empty without tokens.
std::vector<Matrix> transitions(const Profile& profile);
/// Transitions, the weighted mean over profiles, each scaled to the same sum first. Empty unless
/// all have tokens.
std::vector<Matrix> transitions(const std::vector<Profile>& profiles);

LayoutShape shape_of(const Profile& profile);

/// The model's number of a layer; without numbers the layer itself.
inline int number_of(const Profile& profile, int layer) {
    return profile.layer_numbers.empty() ? layer : profile.layer_numbers[at(layer)];
}

/// The copies of each expert of a layer, by GPU; a token takes copy (token mod copies).
class LayerCopies {
  public:
    LayerCopies(const ExpertLayout& layout, int layer);

    int slots() const { return static_cast<int>(gpus_.size()); }
    int of(int expert) const { return first(expert + 1) - first(expert); }
    /// Slots are numbered expert by expert, copy by copy.
    int slot(int expert, std::int64_t token) const {
        return first(expert) + static_cast<int>(token % of(expert));
    }
    int gpu(int expert, std::int64_t token) const { return gpus_[at(slot(expert, token))]; }

  private:
    int first(int expert) const { return first_[at(expert)]; }
    std::vector<int> first_;
    std::vector<int> gpus_;
};

/// Rows of each GPU, an expert's shared out evenly over its copies.
std::vector<double> gpu_loads(const Profile& profile, const ExpertLayout& layout, int layer);

}  // namespace moehub
