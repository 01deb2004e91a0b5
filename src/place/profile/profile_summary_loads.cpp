// Loads x of E experts, sum X, mean m = X / E, shares p = x / X.
//   variation  sqrt(Σ (x − m)² / E) / m
//   gini       Σ_i (2 i − E − 1) x_(i) / (E X), x_(1) ≤ … ≤ x_(E)
//   effective  exp(−Σ p ln p)                                   (Hill number of order 1)
// Two samples of n and n' tokens, k experts each, of one source differ in total variation by about
//   ½ Σ sqrt(2 / π) · sqrt(q (1 − q) (1 / n + 1 / n')) / k,  q = k p    (mean of a half normal)
#include "place/profile/profile_summary_loads.hpp"

#include "base/portable_math.hpp"
#include "place/layer_bounds.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace moehub {
namespace {

constexpr double kHalfNormalMean = 0.79788456080286535588;  // sqrt(2 / π)

double sum(std::span<const double> values) {
    return std::accumulate(values.begin(), values.end(), 0.0);
}

std::vector<double> sorted(std::span<const double> values) {
    std::vector<double> copy(values.begin(), values.end());
    std::sort(copy.begin(), copy.end());
    return copy;
}

double gini_of(std::span<const double> values, double total) {
    const std::vector<double> ascending = sorted(values);
    const auto count = static_cast<double>(ascending.size());
    double weighted = 0;
    for (std::size_t i = 0; i < ascending.size(); ++i)
        weighted += (2 * static_cast<double>(i + 1) - count - 1) * ascending[i];
    return weighted / (count * total);
}

double effective_of(std::span<const double> values, double total) {
    double entropy = 0;
    for (const double value : values)
        if (value > 0) entropy -= value / total * portable_log(value / total);
    return portable_exp(entropy);
}

double contiguous_load(std::span<const double> rows, int gpus, double total) {
    const std::vector<int> gpu_of = contiguous_gpus(static_cast<int>(rows.size()), gpus);
    std::vector<double> load(static_cast<std::size_t>(gpus), 0.0);
    for (std::size_t expert = 0; expert < rows.size(); ++expert)
        load[static_cast<std::size_t>(gpu_of[expert])] += rows[expert];
    return *std::max_element(load.begin(), load.end()) * gpus / total;
}

std::optional<double> correlation_of(std::span<const double> a, std::span<const double> b) {
    const auto count = static_cast<double>(a.size());
    const double mean_a = sum(a) / count, mean_b = sum(b) / count;
    double ab = 0, aa = 0, bb = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        ab += (a[i] - mean_a) * (b[i] - mean_b);
        aa += (a[i] - mean_a) * (a[i] - mean_a);
        bb += (b[i] - mean_b) * (b[i] - mean_b);
    }
    // What rounding alone leaves of even loads is no variation.
    constexpr double kEven = 1e-18;
    if (!(aa > kEven * count * mean_a * mean_a) || !(bb > kEven * count * mean_b * mean_b))
        return std::nullopt;
    return std::clamp(ab / (std::sqrt(aa) * std::sqrt(bb)), -1.0, 1.0);
}

}  // namespace

std::vector<int> contiguous_gpus(int experts, int gpus) {
    std::vector<int> gpu_of;
    for (int gpu = 0; gpu < gpus; ++gpu)
        gpu_of.insert(gpu_of.end(),
                      static_cast<std::size_t>(experts / gpus + (gpu < experts % gpus ? 1 : 0)),
                      gpu);
    return gpu_of;
}

LoadSummary load_summary(std::span<const double> rows_of_expert, int gpus) {
    LoadSummary load;
    load.rows = sum(rows_of_expert);
    load.never_chosen =
        static_cast<int>(std::count(rows_of_expert.begin(), rows_of_expert.end(), 0.0));
    if (!(load.rows > 0)) return load;
    const auto experts = static_cast<double>(rows_of_expert.size());
    const auto busiest = std::max_element(rows_of_expert.begin(), rows_of_expert.end());
    load.mean = load.rows / experts;
    load.largest = *busiest;
    load.busiest = static_cast<int>(busiest - rows_of_expert.begin());
    load.largest_over_mean = load.largest / load.mean;
    load.busiest_share = load.largest / load.rows;
    double squares = 0;
    for (const double rows : rows_of_expert) squares += (rows - load.mean) * (rows - load.mean);
    load.variation = std::sqrt(squares / experts) / load.mean;
    load.gini = gini_of(rows_of_expert, load.rows);
    load.effective_experts = effective_of(rows_of_expert, load.rows);
    load.largest_over_gpu = load.largest * gpus / load.rows;
    load.gpu_bound = load_bound(rows_of_expert, gpus);
    load.gpu_contiguous = contiguous_load(rows_of_expert, gpus, load.rows);
    return load;
}

std::optional<LoadDifference> load_difference(std::span<const double> first,
                                              std::span<const double> second, const Draws& draws) {
    const double first_total = sum(first), second_total = sum(second);
    if (!(first_total > 0) || !(second_total > 0)) return std::nullopt;
    LoadDifference difference;
    const double spread = 1 / draws.first + 1 / draws.second;
    for (std::size_t i = 0; i < first.size(); ++i) {
        const double a = first[i] / first_total, b = second[i] / second_total;
        difference.total_variation += std::abs(a - b) / 2;
        const double chosen =
            std::min(1.0, draws.per_draw * (first[i] + second[i]) / (first_total + second_total));
        difference.by_chance +=
            kHalfNormalMean / 2 * std::sqrt(chosen * (1 - chosen) * spread) / draws.per_draw;
    }
    difference.correlation = correlation_of(first, second);
    return difference;
}

}  // namespace moehub
