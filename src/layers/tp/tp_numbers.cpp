#include "layers/tp/tp_layer.hpp"
#include "sim/sums.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace moehub::layers {
namespace {

constexpr std::uint32_t kFirstInner = 2;  ///< of the first GEMM's width, on one GPU
constexpr std::uint32_t kOutputs = 2;     ///< of the second's columns, on one GPU

/// Between -1 and 1, from what it belongs to.
double number(std::uint64_t what, std::uint64_t gpu, std::uint64_t a, std::uint64_t b) {
    const std::uint64_t bits = sim::identity_of((what << 60) ^ (gpu << 48) ^ (a << 20) ^ b);
    return static_cast<double>(bits >> 40) / static_cast<double>(1 << 23) - 1;
}

enum What : std::uint64_t { input = 1, first_weight = 2, second_weight = 3 };

}  // namespace

TpNumbers::TpNumbers(std::uint32_t gpus, std::int64_t rows, std::size_t width)
    : gpus_(gpus), rows_(rows), width_(width) {
    if (!any()) return;
    made_.assign(gpus * static_cast<std::size_t>(rows) * kOutputs,
                 std::numeric_limits<double>::quiet_NaN());
}

std::vector<double> TpNumbers::partial(std::uint32_t gpu, std::uint32_t row) const {
    std::vector<double> made(width_);
    for (std::uint32_t i = 0; i < kFirstInner; ++i) {
        const double x = number(input, gpu, row, i);
        for (std::size_t j = 0; j < width_; ++j) made[j] += x * number(first_weight, gpu, j, i);
    }
    return made;
}

std::vector<double> TpNumbers::sum(std::uint32_t row) const {
    std::vector<double> all(width_);
    for (std::uint32_t gpu = 0; gpu < gpus_; ++gpu) {
        const std::vector<double> one = partial(gpu, row);
        for (std::size_t j = 0; j < width_; ++j) all[j] += one[j];
    }
    return all;
}

std::vector<double> TpNumbers::normalised(const double* row) const {
    double squares = 1e-6;
    for (std::size_t j = 0; j < width_; ++j)
        squares += row[j] * row[j] / static_cast<double>(width_);
    const double scale = 1 / std::sqrt(squares);
    std::vector<double> made(row, row + width_);
    for (double& one : made) one *= scale;
    return made;
}

std::vector<double> TpNumbers::outputs(std::uint32_t gpu, const double* read) const {
    std::vector<double> made(kOutputs);
    for (std::uint32_t o = 0; o < kOutputs; ++o)
        for (std::size_t j = 0; j < width_; ++j)
            made[o] += read[j] * number(second_weight, gpu, j, o);
    return made;
}

void TpNumbers::multiply(std::uint32_t gpu, std::uint32_t row, const double* read) {
    const std::vector<double> made = outputs(gpu, read);
    const std::size_t at = (gpu * static_cast<std::size_t>(rows_) + row) * kOutputs;
    std::copy(made.begin(), made.end(), made_.begin() + static_cast<std::ptrdiff_t>(at));
}

void TpNumbers::end_with(std::uint32_t row, const double* normalised) {
    if (ends_.empty())
        ends_.assign(static_cast<std::size_t>(rows_) * width_,
                     std::numeric_limits<double>::quiet_NaN());
    std::copy(normalised, normalised + width_,
              ends_.begin() + static_cast<std::ptrdiff_t>(row * width_));
}

void TpNumbers::compare(const double* made, const std::vector<double>& wanted, double& worst,
                        double& largest) {
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        const double off = std::abs(made[i] - wanted[i]);
        if (!(off <= worst)) worst = off;
        largest = std::max(largest, std::abs(wanted[i]));
    }
}

/// Not a number where something was not computed: such an error is no error that is allowed.
double TpNumbers::largest_error() const {
    double largest = 0;
    double worst = 0;
    for (std::uint32_t row = 0; row < rows_; ++row) {
        const std::vector<double> all = sum(row);
        const std::vector<double> read = normalised(all.data());
        if (!ends_.empty()) {
            compare(ends_.data() + row * width_, read, worst, largest);
            continue;
        }
        for (std::uint32_t gpu = 0; gpu < gpus_; ++gpu) {
            const std::size_t at = (gpu * static_cast<std::size_t>(rows_) + row) * kOutputs;
            compare(made_.data() + at, outputs(gpu, read.data()), worst, largest);
        }
    }
    return worst / largest;
}

}  // namespace moehub::layers
