#include "place/profile/pair_counter.hpp"

#include <algorithm>

namespace moehub {
namespace {

constexpr std::int64_t kMostPairs = std::int64_t{1} << 24;

std::vector<std::int64_t> even_sample(std::int64_t tokens, std::int64_t most) {
    const std::int64_t count = std::clamp<std::int64_t>(most, 1, std::max<std::int64_t>(tokens, 1));
    std::vector<std::int64_t> sample(static_cast<std::size_t>(count));
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

}  // namespace

bool pairs_fit(const Profile& profile) {
    constexpr std::int64_t kMostExperts = 2048;
    constexpr std::int64_t kMostCells = std::int64_t{1} << 27;  // of all layers: a few seconds
    return profile.experts <= kMostExperts &&
           profile.layers <= kMostCells / (std::int64_t{profile.experts} * profile.experts);
}

PairCounter::PairCounter(const Profile& profile, std::int64_t most_pairs)
    : profile_(profile),
      experts_(static_cast<std::size_t>(profile.experts)),
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

}  // namespace moehub
