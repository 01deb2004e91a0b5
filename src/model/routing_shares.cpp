// Drawing k of n without putting back is a race: i arrives at an exponentially distributed time of
// rate w_i, the first k to arrive are taken. By time 1 expert i has arrived with probability
// 1 - exp(-w_i). When these probabilities add up to k, the k-th arrival is near time 1, hence
//     w_i = -log(1 - p_i)
// includes i with probability p_i, nearly (B. Rosén, On sampling with probability proportional to
// size, 1997). With w_i = p_i instead, hot experts would get much less than their share: each
// token's further draws cannot take them again.
#include "model/routing_shares.hpp"

#include "base/portable_math.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace moehub {
namespace {

// Thing e arrives at an exponentially distributed time of rate w_e; the first `count` are drawn.
//     P(e drawn) = ∫ w_e exp(-w_e t) P(fewer than count others have arrived by t) dt
// In x = log t the integrand is smooth and falls off at both ends, where the plain sum over equal
// steps converges fastest. How many others have arrived is counted over those before e and those
// after e, both kept up while e advances.
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

/// The probability that each is among `count` things drawn one after the other, each time with
/// probability proportional to the weights of those left. Weights are finite, 0 or more, and such
/// that -log(1 - p) is near the weight of one with probability p; at least `count` are above 0.
/// Takes a time proportional to size · count.
std::vector<double> draw_probabilities(const std::vector<double>& weights, int count) {
    constexpr double kFirst = -16, kLast = 5, kTimeStep = 0.15;
    const std::size_t size = weights.size();
    std::vector<double> drawn(size, 0.0), arrived(size);
    const Arrivals none = [count] {
        Arrivals arrivals(static_cast<std::size_t>(count), 0.0);
        arrivals[0] = 1;
        return arrivals;
    }();
    std::vector<Arrivals> before(size, none);
    for (int i = 0; kFirst + i * kTimeStep <= kLast; ++i) {
        const double time = portable_exp(kFirst + i * kTimeStep);
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

using Shares = std::vector<double>;

double sum(const Shares& shares) {
    return std::accumulate(shares.begin(), shares.end(), 0.0);
}

/// Numbers of mean 0 and standard deviation 1, exactly: the spread that is asked for shall be the
/// spread of this layer, not of layers on average.
Shares standard_normals(std::size_t count, Rng& rng) {
    Shares numbers(count);
    for (auto& number : numbers) number = rng.normal();
    const double n = static_cast<double>(count);
    const double mean = sum(numbers) / n;
    double squares = 0;
    for (auto& number : numbers) {
        number -= mean;
        squares += number * number;
    }
    const double deviation = std::sqrt(squares / n);
    if (deviation > 0)  // one number has none
        for (auto& number : numbers) number /= deviation;
    return numbers;
}

/// The largest finite weight of race_weight.
constexpr double kHeaviest = 20 * 0.69314718055994531;

/// -log(1 - p); infinite where hardly one in a million draws would do without it.
double race_weight(double p) {
    if (p >= 1 - 0x1p-20) return std::numeric_limits<double>::infinity();
    return p < 0x1p-16 ? p + p * p / 2 : -portable_log(1 - p);
}

Shares uncapped_shares(const RoutingSpec& spec, std::size_t experts, Rng& rng) {
    const double mean = 1.0 / static_cast<double>(experts);
    Shares shares(experts, mean);
    switch (spec.shares) {
        case RoutingSpec::Shares::uniform:
        case RoutingSpec::Shares::balanced:
            break;
        case RoutingSpec::Shares::normal: {
            const Shares normals = standard_normals(experts, rng);
            for (std::size_t i = 0; i < experts; ++i)
                shares[i] = std::max(0.0, mean + spec.spread * normals[i]);
            break;
        }
        case RoutingSpec::Shares::zipf:
            for (std::size_t i = 0; i < experts; ++i)
                shares[i] = portable_exp(-spec.spread * portable_log(static_cast<double>(i + 1)));
            rng.shuffle(shares);
            break;
        case RoutingSpec::Shares::lognormal:
            for (auto& share : shares) share = portable_exp(spec.spread * rng.normal());
            break;
    }
    return shares;
}

}  // namespace

std::vector<double> capped(std::vector<double> shares, double cap) {
    std::vector<bool> full(shares.size(), false);
    for (;;) {
        double rest = 1, open = 0;
        std::size_t open_count = 0;
        for (std::size_t i = 0; i < shares.size(); ++i) {
            if (full[i]) {
                rest -= cap;
            } else {
                open += shares[i];
                ++open_count;
            }
        }
        if (open_count == 0) return shares;
        rest = std::max(rest, 0.0);
        bool more = false;
        for (std::size_t i = 0; i < shares.size(); ++i) {
            if (full[i]) continue;
            shares[i] = open > 0 ? shares[i] / open * rest : rest / static_cast<double>(open_count);
            if (shares[i] <= cap) continue;
            shares[i] = cap;
            full[i] = more = true;
        }
        if (!more) return shares;
    }
}

std::vector<double> expert_shares(const RoutingSpec& spec, int experts, int top_k, Rng& rng) {
    return capped(uncapped_shares(spec, static_cast<std::size_t>(experts), rng), 1.0 / top_k);
}

std::vector<double> draw_weights(const std::vector<double>& shares, double count) {
    std::vector<double> weights(shares.size());
    for (std::size_t i = 0; i < shares.size(); ++i) weights[i] = race_weight(count * shares[i]);
    return weights;
}

std::vector<double> exact_draw_weights(const std::vector<double>& shares, int count) {
    constexpr std::size_t kMostWork = 1024;  // beyond, the approximation is within 1 % anyway
    constexpr int kRounds = 5;
    std::vector<double> weights = draw_weights(shares, count);
    // Certain ones are drawn first; the rest is about those that may or may not be.
    std::vector<std::size_t> open;
    for (std::size_t i = 0; i < weights.size(); ++i)
        if (weights[i] > 0 && !std::isinf(weights[i])) open.push_back(i);
    for (const double weight : weights) count -= std::isinf(weight) ? 1 : 0;
    if (count < 1 || open.size() <= static_cast<std::size_t>(count) ||
        shares.size() * static_cast<std::size_t>(count) > kMostWork)
        return weights;

    std::vector<double> race(open.size());
    for (std::size_t i = 0; i < open.size(); ++i) race[i] = weights[open[i]];
    const std::vector<double> wanted = race;
    for (int round = 0; round < kRounds; ++round) {
        const std::vector<double> drawn = draw_probabilities(race, count);
        for (std::size_t i = 0; i < race.size(); ++i) {
            const double got = race_weight(drawn[i]);
            if (got > 0) race[i] *= wanted[i] / std::min(got, kHeaviest);
        }
    }
    for (std::size_t i = 0; i < open.size(); ++i) weights[open[i]] = race[i];
    return weights;
}

}  // namespace moehub
