// What is checked of a tensor-parallel sub-layer's rows, and the numbers that they carry.
#include "layers/tp/tp_layer.hpp"
#include "sim/sums.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

#include <fmt/format.h>

namespace moehub::layers {
namespace {

const double* data(const std::vector<double>& numbers) {
    return numbers.empty() ? nullptr : numbers.data();
}

constexpr std::uint32_t kFirstInner = 2;  ///< first GEMM's inner width on one GPU
constexpr std::uint32_t kOutputs = 2;     ///< second GEMM's columns on one GPU
constexpr double kEpsilon = 1e-6;         ///< keeps a norm of nothing finite

/// Between -1 and 1, from what it belongs to.
double number(std::uint64_t what, std::uint64_t gpu, std::uint64_t a, std::uint64_t b) {
    const std::uint64_t bits = sim::identity_of((what << 60) ^ (gpu << 48) ^ (a << 20) ^ b);
    return static_cast<double>(bits >> 40) / static_cast<double>(1 << 23) - 1;
}

enum What : std::uint64_t { input = 1, first_weight = 2, second_weight = 3 };

/// The plain computation, which nothing of what it checks takes part in: one GEMM over the whole
/// inner width, a norm by its root mean square, and each output as one product of vectors.
std::vector<double> reference_row(std::uint32_t gpus, std::uint32_t row, std::size_t width) {
    std::vector<double> made(width);
    for (std::size_t j = 0; j < width; ++j)
        for (std::uint32_t inner = 0; inner < gpus * kFirstInner; ++inner)
            made[j] += number(input, inner / kFirstInner, row, inner % kFirstInner) *
                       number(first_weight, inner / kFirstInner, j, inner % kFirstInner);
    const double squares = std::inner_product(made.begin(), made.end(), made.begin(), 0.0);
    const double root = std::sqrt(squares / static_cast<double>(width) + kEpsilon);
    for (double& one : made) one /= root;
    return made;
}

std::vector<double> reference_outputs(std::uint32_t gpu, const std::vector<double>& row) {
    std::vector<double> made;
    for (std::uint32_t output = 0; output < kOutputs; ++output) {
        std::vector<double> weights(row.size());
        for (std::size_t j = 0; j < row.size(); ++j)
            weights[j] = number(second_weight, gpu, j, output);
        made.push_back(std::inner_product(row.begin(), row.end(), weights.begin(), 0.0));
    }
    return made;
}

}  // namespace

std::uint64_t TpLayer::identity(GpuId gpu, std::uint32_t row) const {
    return sim::identity_of((std::uint64_t{row} << 16) + gpu + 1);
}

std::uint64_t TpLayer::shared_identity(std::uint32_t row) const {
    return sim::identity_of((std::uint64_t{row} << 16) + 0xffff);
}

void TpLayer::made_partials(GpuId gpu, std::uint32_t piece) {
    sim::RowSums& sums = gpus.hub(gpu).sums(partials);
    for (std::uint32_t row = pieces.begin(piece); row < pieces.end(piece); ++row) {
        const std::vector<double> made =
            numbers.any() ? numbers.partial(gpu, row) : std::vector<double>();
        sums.add_row(row, identity(gpu, row), data(made));
    }
    note_step(gpu, piece, "partial sum made");
}

void TpLayer::absorb(GpuId gpu, std::uint32_t piece, GpuId from) {
    const sim::RowSums& came = gpus.hub(gpu).sums(passed);
    const sim::RowSums& sent = gpus.hub(from).sums(partials);
    sim::RowSums& own = gpus.hub(gpu).sums(partials);
    for (std::uint32_t row = pieces.begin(piece); row < pieces.end(piece); ++row) {
        if (!came.complete(row, 1) || came.identity(row) != came.whole() * sent.identity(row))
            throw std::logic_error(
                fmt::format("gpu {} goes on with row {} before it has come", gpu, row));
        own.add_row(row, sent.identity(row), came.numbers(row));
    }
}

void TpLayer::check_total(GpuId gpu, std::uint32_t row, Sum sum) const {
    Gpus& all = const_cast<TpLayer*>(this)->gpus;
    std::uint64_t wanted = 0;
    for (std::uint32_t other = 0; other < all.count(); ++other) {
        if (sum == Sum::others_in_totals && other == gpu) continue;
        wanted += identity(static_cast<GpuId>(other), row);
    }
    bool right = true;
    if (sum == Sum::in_partials) {
        right = all.hub(gpu).sums(partials).identity(row) == wanted;
    } else if (sum != Sum::given) {
        const sim::RowSums& sums = all.hub(gpu).sums(totals);
        const std::uint32_t parts = sum == Sum::all_in_totals ? all.count() : others();
        right = sums.complete(row, parts) && sums.identity(row) == sums.whole() * wanted;
    }
    if (sum == Sum::others_in_totals)
        right = right && all.hub(gpu).sums(partials).identity(row) == identity(gpu, row);
    if (!right)
        throw std::logic_error(fmt::format("the sum of row {} is not of all GPUs, each once", row));
}

std::vector<double> TpLayer::summed(GpuId gpu, std::uint32_t row, Sum sum) const {
    if (sum == Sum::given) return numbers.sum(row);
    Gpus& all = const_cast<TpLayer*>(this)->gpus;
    const double* own = all.hub(gpu).sums(partials).numbers(row);
    const double* others = all.hub(gpu).sums(totals).numbers(row);
    std::vector<double> made(numbers.width());
    for (std::size_t i = 0; i < made.size(); ++i) {
        if (sum != Sum::all_in_totals) made[i] += own[i];
        if (sum != Sum::in_partials) made[i] += others[i];
    }
    return made;
}

void TpLayer::share(GpuId gpu, std::uint32_t piece, Sum sum, bool normalised) {
    normalised_ = normalised;
    sim::RowSums& rows_of_home = gpus.hub(gpu).sums(shared);
    for (std::uint32_t row = pieces.begin(piece); row < pieces.end(piece); ++row) {
        check_total(gpu, row, sum);
        std::vector<double> made;
        if (numbers.any()) {
            made = summed(gpu, row, sum);
            if (normalised) made = numbers.normalised(made.data());
        }
        rows_of_home.add_row(row, shared_identity(row), data(made));
    }
    if (home_here(gpu, piece)) note_step(gpu, piece, normalised ? "normalised" : "summed");
}

/// What a GPU has of a row that it reads; throws when that is not the row.
const double* TpLayer::found(GpuId gpu, std::uint32_t row) {
    sim::Hub& hub = gpus.hub(gpu);
    if (hub.sums(shared).identity(row) == shared_identity(row))
        return hub.sums(shared).numbers(row);
    const sim::RowSums& loaded = hub.sums(gathered);
    if (loaded.complete(row, 1) && loaded.identity(row) == loaded.whole() * shared_identity(row))
        return loaded.numbers(row);
    const sim::RowMemory& stored = hub.memory(outputs);
    if (row < stored.rows() && stored.complete(row)) return stored.numbers(row);
    throw std::logic_error(fmt::format("gpu {} reads row {}, which has not come", gpu, row));
}

void TpLayer::read(GpuId gpu, std::uint32_t piece) {
    for (std::uint32_t row = pieces.begin(piece); row < pieces.end(piece); ++row) {
        const double* came = found(gpu, row);
        if (read_[gpu][row])
            throw std::logic_error(fmt::format("gpu {} reads row {} twice", gpu, row));
        read_[gpu][row] = true;
        if (!numbers.any()) continue;
        if (normalised_)
            numbers.multiply(gpu, row, came);
        else
            numbers.multiply(gpu, row, numbers.normalised(came).data());
    }
    note_step(gpu, piece, "read");
}

GpuId TpLayer::followed_from(std::uint32_t row) const {
    const std::uint32_t home = pieces.home(pieces.piece_of(row));
    return static_cast<GpuId>(others() == 0 ? home
                                            : (home + 1 + row % (gpus.count() - 1)) % gpus.count());
}

void TpLayer::follow_rows(sim::RowLog& log) const {
    const std::int64_t most = options.timeline.followed_rows;
    if (most < 1) return;
    log.follow((std::int64_t{rows()} - 1) / most + 1, 1);
    for (std::uint32_t row = 0; row < rows(); ++row) {
        if (!log.follows(row, 0)) continue;
        const auto home = static_cast<GpuId>(pieces.home(pieces.piece_of(row)));
        log.add({row, 0, sim::FollowedRow::kNoExpert, followed_from(row), home});
    }
}

void TpLayer::note_step(GpuId gpu, std::uint32_t piece, const char* what) {
    sim::Recorder* const recorder = gpus.recorder();
    if (recorder == nullptr) return;
    for (std::uint32_t row = pieces.begin(piece); row < pieces.end(piece); ++row)
        if (gpu == followed_from(row) || home_here(gpu, piece))
            recorder->rows.step(row, 0, {what, gpu, gpus.endpoint(gpu).now()});
}

void TpLayer::come_by_themselves(GpuId gpu) {
    for (std::uint32_t piece = 0; piece < pieces.count(); ++piece)
        share(gpu, piece, Sum::given, true);
}

void TpLayer::begin(GpuId gpu) {
    if (others() == 0) return;
    underway_.resize(gpus.count());
    underway_[gpu] = true;
    gpus.card(gpu).activity.communicate(1, gpus.endpoint(gpu).now());
}

/// Without a second GEMM a row ends at its home.
void TpLayer::finish(GpuId gpu) {
    if (!underway_.empty() && underway_[gpu])
        gpus.card(gpu).activity.communicate(-1, gpus.endpoint(gpu).now());
    gpus.ended(gpu);
    for (std::uint32_t row = 0; row < rows(); ++row) {
        if (!has_second() && !home_here(gpu, pieces.piece_of(row))) continue;
        const bool there = has_second()
                               ? read_[gpu][row]
                               : gpus.hub(gpu).sums(shared).identity(row) == shared_identity(row);
        if (!there) throw std::logic_error(fmt::format("gpu {} never had row {}", gpu, row));
        if (numbers.any() && !has_second())
            numbers.end_with(row, gpus.hub(gpu).sums(shared).numbers(row));
    }
}

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
    double squares = kEpsilon;
    for (std::size_t j = 0; j < width_; ++j)
        squares += row[j] * row[j] / static_cast<double>(width_);
    const double scale = 1 / std::sqrt(squares);
    std::vector<double> made(row, row + width_);
    for (double& one : made) one *= scale;
    return made;
}

void TpNumbers::multiply(std::uint32_t gpu, std::uint32_t row, const double* read) {
    double* const made = made_.data() + (gpu * static_cast<std::size_t>(rows_) + row) * kOutputs;
    std::fill_n(made, kOutputs, 0.0);
    for (std::uint32_t output = 0; output < kOutputs; ++output)
        for (std::size_t j = 0; j < width_; ++j)
            made[output] += read[j] * number(second_weight, gpu, j, output);
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
        const std::vector<double> read = reference_row(gpus_, row, width_);
        if (!ends_.empty()) {
            compare(ends_.data() + row * width_, read, worst, largest);
            continue;
        }
        for (std::uint32_t gpu = 0; gpu < gpus_; ++gpu) {
            const std::size_t at = (gpu * static_cast<std::size_t>(rows_) + row) * kOutputs;
            compare(made_.data() + at, reference_outputs(gpu, read), worst, largest);
        }
    }
    return worst / largest;
}

}  // namespace moehub::layers
