// Thing e arrives at an exponentially distributed time of rate w_e; the first `count` are drawn.
//     P(e drawn) = ∫ w_e exp(-w_e t) P(fewer than count others have arrived by t) dt
// In x = log t the integrand is smooth and falls off at both ends, where the plain sum over equal
// steps converges fastest. How many others have arrived is counted over those before e and those
// after e, both kept up while e advances.
#include "model/draw_probabilities.hpp"

#include "base/portable_math.hpp"

#include <numeric>

namespace moehub {
namespace {

/// Probabilities of 0, 1, … size - 1 arrivals; more are not told apart.
using Arrivals = std::vector<double>;

void add(Arrivals& arrivals, double arrived) {
    for (std::size_t n = arrivals.size() - 1; n > 0; --n)
        arrivals[n] = arrivals[n] * (1 - arrived) + arrivals[n - 1] * arrived;
    arrivals[0] *= 1 - arrived;
}

/// P(the sum of both is below their size).
double fewer_than_size(const Arrivals& before, const Arrivals& after) {
    double probability = 0, up_to = 0;
    for (std::size_t n = 0; n < before.size(); ++n) {
        up_to += after[n];
        probability += before[before.size() - 1 - n] * up_to;
    }
    return probability;
}

}  // namespace

std::vector<double> draw_probabilities(const std::vector<double>& weights, int count) {
    constexpr double kFirst = -16, kLast = 5, kStep = 0.15;
    const std::size_t size = weights.size();
    std::vector<double> drawn(size, 0.0), arrived(size);
    const Arrivals none = [count] {
        Arrivals arrivals(static_cast<std::size_t>(count), 0.0);
        arrivals[0] = 1;
        return arrivals;
    }();
    std::vector<Arrivals> before(size, none);
    for (int i = 0; kFirst + i * kStep <= kLast; ++i) {
        const double time = portable_exp(kFirst + i * kStep);
        for (std::size_t e = 0; e < size; ++e) arrived[e] = 1 - portable_exp(-weights[e] * time);
        for (std::size_t e = 1; e < size; ++e) {
            before[e] = before[e - 1];
            add(before[e], arrived[e - 1]);
        }
        Arrivals after = none;
        for (std::size_t e = size; e-- > 0;) {
            drawn[e] += weights[e] * time * (1 - arrived[e]) * fewer_than_size(before[e], after);
            add(after, arrived[e]);
        }
    }
    // The sum is known: that takes off most of what the steps leave as an error.
    const double scale = count / std::accumulate(drawn.begin(), drawn.end(), 0.0);
    for (auto& probability : drawn) probability *= scale;
    return drawn;
}

}  // namespace moehub
