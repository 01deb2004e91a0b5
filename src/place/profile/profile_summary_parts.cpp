#include "place/profile/profile_summary_parts.hpp"

#include <algorithm>
#include <numeric>

namespace moehub {
namespace {

constexpr std::int64_t kMostPairs = std::int64_t{1} << 24;

std::vector<std::int64_t> even_sample(std::int64_t tokens, std::int64_t most) {
    const std::int64_t count = std::clamp<std::int64_t>(most, 1, std::max<std::int64_t>(tokens, 1));
    std::vector<std::int64_t> sample(at(count));
    // Whole steps and what is left of them apart: a product of both may not fit in 64 bits.
    const std::int64_t step = tokens / count, rest = tokens % count;
    std::int64_t token = 0, carried = 0;
    for (std::int64_t& one : sample) {
        one = token;
        carried += rest;
        token += step + (carried >= count ? 1 : 0);
        carried %= count;
    }
    return sample;
}

/// Either order of a pair counts as one.
void fold(PairCounts& counts, std::size_t experts) {
    for (std::size_t a = 0; a < experts; ++a)
        for (std::size_t b = a + 1; b < experts; ++b) {
            counts[a * experts + b] += counts[b * experts + a];
            counts[b * experts + a] = 0;
        }
}

constexpr std::size_t kLastFew = 4;  ///< one alone leads astray, many never leave a block

std::size_t index(int row, int column, std::size_t experts) {
    return at(row) * experts + at(column);
}

int nearest_to_last(const std::vector<double>& matrix, const std::vector<int>& order,
                    const std::vector<bool>& ordered) {
    const std::size_t experts = ordered.size();
    const std::size_t from = order.size() - std::min(order.size(), kLastFew);
    int best = -1;
    double most = 0;
    for (std::size_t expert = 0; expert < experts; ++expert) {
        if (ordered[expert]) continue;
        double near = 0;
        for (std::size_t at = from; at < order.size(); ++at)
            near += matrix[index(order[at], static_cast<int>(expert), experts)];
        if (best >= 0 && near <= most) continue;
        best = static_cast<int>(expert);
        most = near;
    }
    return best;
}

}  // namespace

bool pairs_fit(const Profile& profile) {
    constexpr std::int64_t kMostExperts = 2048;
    constexpr std::int64_t kMostCells = std::int64_t{1}
                                        << 27;  // cells of all layers: a few seconds
    return profile.experts <= kMostExperts &&
           profile.layers <= kMostCells / (std::int64_t{profile.experts} * profile.experts);
}

PairCounter::PairCounter(const Profile& profile, std::int64_t most_pairs)
    : profile_(profile),
      experts_(at(profile.experts)),
      sample_(even_sample(profile.tokens, std::min(most_pairs, kMostPairs) /
                                              (std::int64_t{profile.top_k} * profile.top_k))) {}

void PairCounter::count_own_pairs(int layer) {
    for (const std::int64_t token : sample_) {
        const auto own = profile_.chosen_by(layer, token);
        for (std::size_t choice = 0; choice + 1 < own.size(); ++choice) {
            if (own[choice] == Profile::kNobody) continue;
            std::uint32_t* const row = counts_.data() + own[choice] * experts_;
            for (const std::uint16_t expert : own.subspan(choice + 1))
                if (expert != Profile::kNobody) ++row[expert];
        }
    }
}

void PairCounter::count_far_pairs(int layer) {
    for (std::size_t i = 0; i < sample_.size(); ++i) {
        const auto own = profile_.chosen_by(layer, sample_[i]);
        const auto other = profile_.chosen_by(layer, second_token(i, Partner::far_away));
        // Every second choice with all others: as many pairs as a token has of its own. An expert
        // has top_k − 1 companions, never itself; without that, busy ones would have too few.
        for (std::size_t choice = i % 2; choice < own.size(); choice += 2) {
            if (own[choice] == Profile::kNobody) continue;
            const auto itself = std::find(other.begin(), other.end(), own[choice]);
            const std::size_t left_out =
                itself == other.end() ? choice : static_cast<std::size_t>(itself - other.begin());
            std::uint32_t* const row = counts_.data() + own[choice] * experts_;
            for (std::size_t at = 0; at < other.size(); ++at)
                if (at != left_out && other[at] != Profile::kNobody) ++row[other[at]];
        }
    }
}

const PairCounts& PairCounter::coactive(int layer, Partner partner) {
    counts_.assign(experts_ * experts_, 0);
    if (partner == Partner::itself)
        count_own_pairs(layer);
    else
        count_far_pairs(layer);
    fold(counts_, experts_);
    return counts_;
}

const PairCounts& PairCounter::transitions(int layer, Partner partner) {
    counts_.assign(experts_ * experts_, 0);
    for (std::size_t i = 0; i < sample_.size(); ++i) {
        const auto there = profile_.chosen_by(layer + 1, second_token(i, partner));
        for (const std::uint16_t a : profile_.chosen_by(layer, sample_[i])) {
            if (a == Profile::kNobody) continue;
            std::uint32_t* const row = counts_.data() + a * experts_;
            for (const std::uint16_t b : there)
                if (b != Profile::kNobody) ++row[b];
        }
    }
    return counts_;
}

std::vector<std::int64_t> PairCounter::loads(int layer) const {
    std::vector<std::int64_t> loads(experts_, 0);
    for (const std::int64_t token : sample_)
        for (const std::uint16_t expert : profile_.chosen_by(layer, token))
            if (expert != Profile::kNobody) ++loads[expert];
    return loads;
}

std::vector<int> chained(const std::vector<double>& symmetric, int experts) {
    std::vector<int> order;
    if (experts < 1 || symmetric.empty()) return order;
    std::vector<bool> ordered(at(experts), false);
    const auto strongest = std::max_element(symmetric.begin(), symmetric.end());
    int next = static_cast<int>((strongest - symmetric.begin()) / experts);
    while (next >= 0) {
        order.push_back(next);
        ordered[at(next)] = true;
        next = nearest_to_last(symmetric, order, ordered);
    }
    return order;
}

std::vector<int> along_diagonal(const std::vector<double>& matrix, const std::vector<int>& rows) {
    const std::size_t experts = rows.size();
    // Centre of gravity of each column, squares as weights: what is weak must not pull.
    std::vector<double> centre(experts, 0.0);
    for (std::size_t column = 0; column < experts; ++column) {
        double weights = 0;
        for (std::size_t at = 0; at < experts; ++at) {
            const double value = matrix[index(rows[at], static_cast<int>(column), experts)];
            centre[column] += static_cast<double>(at) * value * value;
            weights += value * value;
        }
        centre[column] = weights > 0 ? centre[column] / weights : static_cast<double>(experts);
    }
    std::vector<int> order(experts);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&centre](int a, int b) { return centre[at(a)] < centre[at(b)]; });
    return order;
}

std::vector<double> reordered(const std::vector<double>& matrix, const std::vector<int>& rows,
                              const std::vector<int>& columns) {
    std::vector<double> out;
    out.reserve(matrix.size());
    for (const int row : rows)
        for (const int column : columns) out.push_back(matrix[index(row, column, columns.size())]);
    return out;
}

}  // namespace moehub
