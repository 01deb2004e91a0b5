#include "layers/moe_layer.hpp"
#include "sim/sums.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include <fmt/format.h>

namespace moehub::layers {
namespace {

constexpr int kInner = 16;  ///< numbers inside an expert; real ones have thousands

}  // namespace

Books::Books(const LayerInput& input, int shards, int width)
    : routing_(input.routing), shards_(shards) {
    const std::size_t rows = input.routing.chosen.size() * static_cast<std::size_t>(shards);
    delivered_.resize(rows);
    returned_.resize(rows);
    if (width == 0) return;
    reference_.emplace(input.model, width, std::max(kInner, shards));
    for (std::int64_t token = 0; token < routing_.tokens; ++token) {
        const std::vector<double> x = reference_->input(token);
        inputs_.insert(inputs_.end(), x.begin(), x.end());
    }
    outputs_.resize(inputs_.size());
}

std::size_t Books::index(std::uint32_t token, std::uint32_t choice, int shard) const {
    const std::size_t row = std::size_t{token} * static_cast<std::size_t>(routing_.top_k) + choice;
    return row * static_cast<std::size_t>(shards_) + static_cast<std::size_t>(shard);
}

void Books::enter(std::vector<bool>& list, std::size_t at, const char* what) {
    if (list[at]) {
        const std::size_t row = at / static_cast<std::size_t>(shards_);
        const auto top_k = static_cast<std::size_t>(routing_.top_k);
        throw std::logic_error(
            fmt::format("choice {} of token {} was {} twice", row % top_k, row / top_k, what));
    }
    list[at] = true;
}

void Books::delivered(std::uint32_t token, std::uint32_t choice, int shard) {
    enter(delivered_, index(token, choice, shard), "delivered");
}

void Books::returned(std::uint32_t token, std::uint32_t choice, int shard, const double* numbers) {
    enter(returned_, index(token, choice, shard), "returned");
    if (!reference_) return;
    const double weight = routing_.weights_of(0, token)[choice];
    double* output = outputs_.data() + token * width();
    for (std::size_t i = 0; i < width(); ++i) output[i] += weight * numbers[i];
}

std::uint64_t Books::identity(std::uint32_t token, std::uint32_t choice) const {
    return sim::identity_of((std::uint64_t{token} << 16) + choice + 1);
}

const double* Books::weighted(std::uint32_t token, std::uint32_t choice, const double* numbers) {
    if (!reference_) return nullptr;
    const double weight = routing_.weights_of(0, token)[choice];
    std::vector<double>& out = results_.emplace_back(numbers, numbers + width());
    for (double& number : out) number *= weight;
    return out.data();
}

void Books::returned_sum(std::uint32_t token, std::uint64_t identity_sum, std::uint64_t times,
                         const double* numbers) {
    std::uint64_t all = 0;
    const auto top_k = static_cast<std::uint32_t>(routing_.top_k);
    for (std::uint32_t choice = 0; choice < top_k; ++choice) {
        all += identity(token, choice);
        enter(returned_, index(token, choice, 0), "returned");
    }
    if (identity_sum != times * all) {
        throw std::logic_error(
            fmt::format("the sum of token {} is not of all its results, each once", token));
    }
    if (!reference_) return;
    double* output = outputs_.data() + token * width();
    for (std::size_t i = 0; i < width(); ++i) output[i] += numbers[i];
}

void Books::check() const {
    const auto missing = [](const std::vector<bool>& list) {
        return std::count(list.begin(), list.end(), false);
    };
    if (missing(delivered_) == 0 && missing(returned_) == 0) return;
    throw std::logic_error(fmt::format("{} rows were not delivered and {} not returned",
                                       missing(delivered_), missing(returned_)));
}

const double* Books::input(std::uint32_t token) const {
    return reference_ ? inputs_.data() + token * width() : nullptr;
}

const double* Books::result(int expert, int shard, const double* row) {
    if (!reference_) return nullptr;
    std::vector<double>& out = results_.emplace_back(width());
    const int inner = reference_->inner();
    reference_->add_expert(expert, {row, width()}, out, inner * shard / shards_,
                           inner * (shard + 1) / shards_);
    return out.data();
}

void Books::add_shared(std::uint32_t token) {
    if (!reference_) return;
    reference_->add_shared({input(token), width()}, {outputs_.data() + token * width(), width()});
}

double Books::largest_error() const {
    if (!reference_) return 0;
    double largest = 0;
    double error = 0;
    for (std::uint32_t token = 0; token < routing_.tokens; ++token) {
        const std::vector<double> want = reference_->output(routing_, token);
        for (std::size_t i = 0; i < width(); ++i) {
            const double off = std::abs(outputs_[token * width() + i] - want[i]);
            largest = std::max(largest, std::abs(want[i]));
            if (!std::isfinite(off)) return std::numeric_limits<double>::infinity();
            error = std::max(error, off);
        }
    }
    return largest > 0 ? error / largest : error;
}

}  // namespace moehub::layers
