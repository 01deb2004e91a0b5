#include "model/reference.hpp"

#include "base/portable_math.hpp"
#include "base/rng.hpp"

namespace moehub {
namespace {

/// A number between -1 and 1, another for each argument.
double made_up(std::uint64_t number) {
    const std::uint64_t bits = mixed_bits(number + 0x9e3779b97f4a7c15u);
    return static_cast<double>(static_cast<std::int64_t>(bits >> 11)) * 0x1p-52 - 1.0;
}

double silu(double x) {
    return x / (1.0 + portable_exp(-x));
}

double dot(std::span<const double> a, std::span<const double> b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum;
}

enum Matrix { kGate, kUp, kDown, kMatrices };

}  // namespace

ReferenceLayer::ReferenceLayer(const Model& model, int width, int inner)
    : gated_(model.gated),
      experts_(model.experts),
      shared_(model.shared_experts),
      width_(width),
      inner_(inner) {
    const std::size_t count = static_cast<std::size_t>(experts_ + shared_) * kMatrices *
                              static_cast<std::size_t>(inner) * static_cast<std::size_t>(width);
    weights_.resize(count);
    for (std::size_t i = 0; i < count; ++i) weights_[i] = made_up(i);
}

std::vector<double> ReferenceLayer::input(std::int64_t token) const {
    std::vector<double> x(static_cast<std::size_t>(width_));
    const std::uint64_t first = (std::uint64_t{1} << 60) + static_cast<std::uint64_t>(token) *
                                                               static_cast<std::uint64_t>(width_);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = made_up(first + i);
    return x;
}

std::span<const double> ReferenceLayer::matrix(int expert, int which) const {
    const std::size_t size = static_cast<std::size_t>(inner_) * static_cast<std::size_t>(width_);
    return {weights_.data() + static_cast<std::size_t>(expert * kMatrices + which) * size, size};
}

void ReferenceLayer::add_expert(int expert, std::span<const double> x, std::span<double> out,
                                int first, int last) const {
    const auto width = static_cast<std::size_t>(width_);
    for (int j = first; j < last; ++j) {
        const std::size_t row = static_cast<std::size_t>(j) * width;
        const double up = dot(matrix(expert, kUp).subspan(row, width), x);
        const double inner =
            gated_ ? silu(dot(matrix(expert, kGate).subspan(row, width), x)) * up : silu(up);
        const auto down = matrix(expert, kDown).subspan(row, width);
        for (std::size_t i = 0; i < width; ++i) out[i] += inner * down[i];
    }
}

void ReferenceLayer::add_shared(std::span<const double> x, std::span<double> out) const {
    for (int i = 0; i < shared_; ++i) add_expert(experts_ + i, x, out, 0, inner_);
}

std::vector<double> ReferenceLayer::output(const Routing& routing, std::int64_t token) const {
    const std::vector<double> x = input(token);
    std::vector<double> y(x.size());
    const auto chosen = routing.chosen_by(0, token);
    const auto weights = routing.weights_of(0, token);
    for (std::size_t choice = 0; choice < chosen.size(); ++choice) {
        std::vector<double> out(x.size());
        add_expert(chosen[choice], x, out, 0, inner_);
        for (std::size_t i = 0; i < y.size(); ++i) y[i] += double{weights[choice]} * out[i];
    }
    add_shared(x, y);
    return y;
}

}  // namespace moehub
