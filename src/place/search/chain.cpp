#include "place/search/chain.hpp"

#include <algorithm>

namespace moehub {

std::vector<int> transition_weights(const std::vector<LayerTokens>& tokens) {
    std::vector<double> weights = tokens.front().sample().profile_weights();
    std::vector<double> moves(weights.size());
    const auto items = [&](std::size_t layer, std::size_t token) {
        const auto chosen = tokens[layer].of(token);
        return chosen.size() - at(std::count(chosen.begin(), chosen.end(), tokens[layer].nobody()));
    };
    double most = 0;  // most rows of a layer
    for (std::size_t layer = 0; layer + 1 < tokens.size(); ++layer) {
        double rows = 0;
        for (std::size_t token = 0; token < tokens[layer].size(); ++token) {
            const int profile = tokens[layer].sample().profile(token / 64);
            const auto both = static_cast<double>(items(layer, token) * items(layer + 1, token));
            moves[at(profile)] += both;
            rows += 2 * both;
        }
        most = std::max(most, rows);
    }
    for (std::size_t at = 0; at < weights.size(); ++at) weights[at] /= std::max(moves[at], 1.0);
    return whole_weights(weights, most);
}

Chain::Chain(const std::vector<LayerTokens>& tokens, std::vector<std::vector<int>> domain_of,
             int domains)
    : domains_(at(domains)) {
    const std::size_t layers = tokens.size();
    const std::vector<int> weights = transition_weights(tokens);
    next_.resize(layers);
    previous_.resize(layers);
    for (std::size_t layer = 0; layer + 1 < layers; ++layer) {
        const std::size_t mine = domain_of[layer].size();
        const std::size_t theirs = domain_of[layer + 1].size();
        next_[layer].assign(mine * theirs, 0);
        for (std::size_t token = 0; token < tokens[layer].size(); ++token) {
            const int profile = tokens[layer].sample().profile(token / 64);
            const int weight = weights[at(profile)];
            for (const std::uint16_t from : tokens[layer].of(token))
                for (const std::uint16_t to : tokens[layer + 1].of(token))
                    if (from != tokens[layer].nobody() && to != tokens[layer + 1].nobody()) {
                        next_[layer][from * theirs + to] += weight;
                        total_ += weight;
                    }
        }
        previous_[layer + 1].assign(mine * theirs, 0);
        for (std::size_t from = 0; from < mine; ++from)
            for (std::size_t to = 0; to < theirs; ++to)
                previous_[layer + 1][to * mine + from] = next_[layer][from * theirs + to];
    }
    place(std::move(domain_of));
}

void Chain::place(std::vector<std::vector<int>> domain_of) {
    domain_of_ = std::move(domain_of);
    const std::size_t layers = domain_of_.size();
    pull_.resize(layers);
    pairs_.assign(domains_ * domains_, 0);
    for (std::size_t layer = 0; layer < layers; ++layer) {
        pull_[layer].assign(domain_of_[layer].size() * domains_, 0);
        const auto add = [&](const Counts& rows, std::size_t neighbour) {
            const std::vector<int>& there = domain_of_[neighbour];
            for (std::size_t item = 0; item < domain_of_[layer].size(); ++item)
                for (std::size_t other = 0; other < there.size(); ++other)
                    pull_[layer][item * domains_ + at(there[other])] +=
                        rows[item * there.size() + other];
        };
        if (layer + 1 < layers) add(next_[layer], layer + 1);
        // Pairs of this layer and the next; those with the one before are in already.
        for (std::size_t item = 0; item < domain_of_[layer].size(); ++item)
            for (std::size_t domain = 0; domain < domains_; ++domain) {
                const std::size_t own = at(domain_of_[layer][item]);
                const std::int32_t count = pull_[layer][item * domains_ + domain];
                pairs_[own * domains_ + domain] += count;
                if (own != domain) pairs_[domain * domains_ + own] += count;
            }
        if (layer > 0) add(previous_[layer], layer - 1);
    }
    powers_ = 0;
    for (std::size_t g = 0; g < domains_; ++g)
        for (std::size_t h = 0; h < g; ++h)
            powers_ += power(static_cast<double>(pairs_[g * domains_ + h]));
}

double Chain::heaviest_pair() const {
    std::int64_t most = 0;
    for (std::size_t g = 0; g < domains_; ++g)
        for (std::size_t h = 0; h < g; ++h) most = std::max(most, pairs_[g * domains_ + h]);
    const double even = static_cast<double>(total_) / static_cast<double>(domains_ * domains_);
    return total_ > 0 ? static_cast<double>(most) / 2 / even : 0;
}

/// Eighth power of a pair over what it would be if all were even.
double Chain::power(double pair) const {
    if (total_ <= 0) return 0;
    const double ratio =
        pair / 2 / static_cast<double>(total_) * static_cast<double>(domains_ * domains_);
    const double squared = ratio * ratio;
    return squared * squared * squared * squared;
}

double Chain::off_domain_change(int layer, int a, int b) const {
    const std::size_t g = at(domain_of_[at(layer)][at(a)]);
    const std::size_t h = at(domain_of_[at(layer)][at(b)]);
    if (g == h || total_ <= 0) return 0;
    const std::int32_t* of_a = pull(layer, a);
    const std::int32_t* of_b = pull(layer, b);
    const std::int64_t stay = (std::int64_t{of_b[g]} - of_a[g]) - (std::int64_t{of_b[h]} - of_a[h]);
    return -static_cast<double>(stay) / static_cast<double>(total_);
}

double Chain::pair_norm_change(int layer, int a, int b) const {
    const std::size_t g = at(domain_of_[at(layer)][at(a)]);
    const std::size_t h = at(domain_of_[at(layer)][at(b)]);
    if (g == h || total_ <= 0) return 0;
    const std::int32_t* of_a = pull(layer, a);
    const std::int32_t* of_b = pull(layer, b);
    double change = 0;
    const auto moves = [&](std::size_t from, std::size_t to, std::int64_t by) {
        const std::int64_t now = pairs_[from * domains_ + to];
        change += power(static_cast<double>(now + by)) - power(static_cast<double>(now));
    };
    for (std::size_t x = 0; x < domains_; ++x) {
        if (x == g || x == h) continue;
        const std::int64_t v = std::int64_t{of_b[x]} - of_a[x];
        moves(g, x, v);
        moves(h, x, -v);
    }
    moves(g, h, (std::int64_t{of_b[h]} - of_a[h]) - (std::int64_t{of_b[g]} - of_a[g]));
    return norm_of(powers_ + change) - norm_of(powers_);
}

/// Items of a neighbouring layer see a and b (rows of `rows`) change places.
void Chain::shift(int layer, const Counts& rows, const Swap& done) {
    const std::size_t items = domain_of_[at(layer)].size();
    Counts& pulls = pull_[at(layer)];
    for (std::size_t item = 0; item < items; ++item) {
        const std::int32_t less = rows[done.a * items + item] - rows[done.b * items + item];
        pulls[item * domains_ + done.from] -= less;
        pulls[item * domains_ + done.to] += less;
    }
}

void Chain::swap(int layer, int a, int b) {
    const std::size_t g = at(domain_of_[at(layer)][at(a)]);
    const std::size_t h = at(domain_of_[at(layer)][at(b)]);
    if (g == h) return;
    const std::int32_t* of_a = pull(layer, a);
    const std::int32_t* of_b = pull(layer, b);
    const auto add = [&](std::size_t from, std::size_t to, std::int64_t by) {
        std::int64_t& pair = pairs_[from * domains_ + to];
        if (from != to) powers_ -= power(static_cast<double>(pair));
        pair += by;
        if (from == to) return;
        powers_ += power(static_cast<double>(pair));
        pairs_[to * domains_ + from] = pair;
    };
    for (std::size_t x = 0; x < domains_; ++x) {
        const std::int64_t v = std::int64_t{of_b[x]} - of_a[x];
        add(g, x, v);
        add(h, x, -v);
    }
    const Swap done{at(a), at(b), g, h};
    if (layer + 1 < static_cast<int>(domain_of_.size())) shift(layer + 1, next_[at(layer)], done);
    if (layer > 0) shift(layer - 1, previous_[at(layer)], done);
    std::swap(domain_of_[at(layer)][at(a)], domain_of_[at(layer)][at(b)]);
}

Matrix Chain::from_before(int layer) const {
    const std::vector<int>& mine = domain_of_[at(layer)];
    const std::vector<int>& before = domain_of_[at(layer) - 1];
    Matrix sums(static_cast<int>(domains_), static_cast<int>(domains_));
    for (std::size_t item = 0; item < mine.size(); ++item)
        for (std::size_t other = 0; other < before.size(); ++other)
            sums(mine[item], before[other]) += previous_[at(layer)][item * before.size() + other];
    return sums;
}

}  // namespace moehub
