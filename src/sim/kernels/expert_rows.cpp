/// Balanced: token t chooses experts (t + j·s) mod E, j < k, with the stride s = ⌈E / k⌉; fewer
/// tokens than s are spread evenly over the stride: (⌊t·s / tokens⌋ + j·s) mod E. The first rank is
/// the measured one. (Where k does not divide E a token may choose an expert twice, as measured.)
///
/// Power law: each expert draws a share with density x^−α between 1 and 0.8·tokens (between 0.01
/// and 2 where tokens·k ≤ E); shares are scaled to tokens·k and rounded; what rounding leaves over
/// goes to the emptiest experts, one each, what it gave too much comes from the fullest. Ranks hold
/// the experts in the order drawn (contiguous groups, not sorted), and the fullest rank is the
/// measured one. An expert has at most one row of a token: choices that would be doubled fall to
/// others of the rank.
/// The published time is a mean over five random draws. Here: the E even quantiles of the density,
/// dealt to the ranks in `kDraws` fixed orders, and the mean of what each leaves on the fullest.
///
/// Group-limited choice (DeepSeek): the groups with most chosen experts are kept, equals in order;
/// choices elsewhere fall to the first experts of the kept groups, all scores there being equal.
#include "base/portable_math.hpp"
#include "sim/kernels/kernels.hpp"

#include <algorithm>
#include <cmath>

namespace moehub {
namespace {

constexpr int kDraws = 6;
using Counts = std::array<std::int32_t, kMostExperts>;
using Order = std::array<std::int16_t, kMostExperts>;
using Choices = std::array<int, kMostChoices>;

std::size_t at(std::int64_t i) {
    return static_cast<std::size_t>(i);
}

void add(ExpertRows& sum, const std::int32_t* rows, int experts) {
    for (int e = 0; e < experts; ++e) {
        const std::int32_t r = rows[e];
        if (r <= 0) continue;
        sum.rows += r;
        sum.experts += 1;
        for (std::size_t i = 0; i < kTileRows.size(); ++i)
            sum.tiles[i] += (r + kTileRows[i] - 1) >> (i + 3);  // kTileRows[i] = 2^(i + 3)
    }
    sum.fullest += *std::max_element(rows, rows + experts);
}

ExpertRows mean(ExpertRows sum, int draws) {
    sum.rows /= draws;
    sum.experts /= draws;
    sum.fullest /= draws;
    for (double& tiles : sum.tiles) tiles /= draws;
    return sum;
}

/// The kept groups, as bits. A group's score is that of its two best experts.
std::uint64_t kept_groups(const RowDraw& r, const Choices& group) {
    std::uint64_t one = 0;
    std::uint64_t two = 0;
    for (int j = 0; j < r.top_k; ++j) {
        const std::uint64_t bit = std::uint64_t{1} << group[at(j)];
        two |= one & bit;
        one |= bit;
    }
    std::uint64_t kept = 0;
    int left = r.kept_groups;
    for (const std::uint64_t level : {two, one & ~two, ~one})
        for (int g = 0; g < r.groups && left > 0; ++g)
            if (level >> g & 1) {
                kept |= std::uint64_t{1} << g;
                --left;
            }
    return kept;
}

/// `count` tokens chose `chosen`, of the groups `group`: adds their rows after the limit on groups.
void add_limited(const RowDraw& r, const Choices& chosen, const Choices& group, std::int32_t count,
                 Counts& rows) {
    const int size = r.experts / r.groups;
    if (size < 2) {  // no second best, no score: every token takes the first experts
        for (int e = 0; e < r.top_k; ++e) rows[at(e)] += count;
        return;
    }
    const std::uint64_t kept = kept_groups(r, group);
    int homeless = 0;
    for (int j = 0; j < r.top_k; ++j)
        if (kept >> group[at(j)] & 1)
            rows[at(chosen[at(j)])] += count;
        else
            ++homeless;
    const auto end = chosen.begin() + r.top_k;
    for (int g = 0; g < r.groups && homeless > 0; ++g) {
        if (!(kept >> g & 1)) continue;
        for (int e = g * size; e < (g + 1) * size && homeless > 0; ++e)
            if (std::find(chosen.begin(), end, e) == end) {
                rows[at(e)] += count;
                --homeless;
            }
    }
}

/// Tokens by the expert of their first choice.
Counts balanced_starts(const RowDraw& r, int stride) {
    Counts starts{};
    const auto tokens = static_cast<std::int32_t>(r.tokens);
    if (tokens >= stride)
        for (int e = 0; e < r.experts; ++e)
            starts[at(e)] = tokens / r.experts + (e < tokens % r.experts ? 1 : 0);
    else
        for (int t = 0; t < tokens; ++t) ++starts[at(t * stride / tokens)];
    return starts;
}

ExpertRows balanced(const RowDraw& r) {
    const int stride = (r.experts - 1) / r.top_k + 1;
    Counts starts = balanced_starts(r, stride);
    Counts rows{};
    if (r.groups > 1) {
        if (stride * r.top_k == r.experts)  // then starts a stride apart choose the same experts
            for (int s = r.experts - 1; s >= stride; --s) {
                starts[at(s - stride)] += starts[at(s)];
                starts[at(s)] = 0;
            }
        Choices chosen{};
        Choices group{};
        for (int s = 0; s < r.experts; ++s) {
            if (starts[at(s)] == 0) continue;
            for (int j = 0; j < r.top_k; ++j) {
                chosen[at(j)] = (s + j * stride) % r.experts;
                group[at(j)] = chosen[at(j)] / (r.experts / r.groups);
            }
            add_limited(r, chosen, group, starts[at(s)], rows);
        }
    } else {
        for (int e = 0; e < r.experts / r.ep; ++e)
            for (int j = 0, start = e; j < r.top_k; ++j) {
                rows[at(e)] += starts[at(start)];
                start -= stride;
                if (start < 0) start += r.experts;
            }
    }
    ExpertRows sum;
    add(sum, rows.data(), r.experts / r.ep);
    return sum;
}

/// The rows of all experts, fullest first.
Counts power_law_rows(const RowDraw& r) {
    const auto tokens = static_cast<double>(r.tokens);
    const bool many = r.tokens * r.top_k > r.experts;
    const double low = many ? 1 : 0.01;
    const double high = many ? std::max(1.0, 0.8 * tokens) : 2;
    // An exponent of 1 is the limit, which rounding would not bear.
    const double fall = std::abs(r.alpha - 1) < 1e-6 ? 1e-6 : 1 - r.alpha;
    const double from = portable_exp(fall * portable_log(low));
    const double to = portable_exp(fall * portable_log(high));
    std::array<double, kMostExperts> share;
    double sum = 0;
    for (int i = 0; i < r.experts; ++i) {
        const double u = (r.experts - i - 0.5) / r.experts;
        share[at(i)] = portable_exp(portable_log((to - from) * u + from) / fall);
        sum += share[at(i)];
    }
    Counts rows;
    std::int64_t left = r.tokens * r.top_k;
    for (int i = 0; i < r.experts; ++i) {
        rows[at(i)] = static_cast<std::int32_t>(share[at(i)] / sum * tokens * r.top_k + 0.5);
        left -= rows[at(i)];
    }
    for (int i = r.experts - 1; i >= 0 && left > 0; --i, --left) ++rows[at(i)];
    for (int i = 0; left < 0; i = (i + 1) % r.experts)
        if (rows[at(i)] > 0) {
            --rows[at(i)];
            ++left;
        }
    return rows;
}

/// A fixed shuffle: the index of the expert that has the i-th most rows.
void shuffle(Order& expert, int experts, std::uint64_t& random) {
    for (int e = 0; e < experts; ++e) expert[at(e)] = static_cast<std::int16_t>(e);
    for (int e = experts - 1; e > 0; --e) {
        random = random * 6364136223846793005U + 1442695040888963407U;
        const auto other = ((random >> 33) * static_cast<std::uint64_t>(e + 1)) >> 31;
        std::swap(expert[at(e)], expert[other]);
    }
}

/// Where the tokens' choices fall on a limit: the experts, fullest first, take up the first choices
/// of all tokens, then the second choices, and so on, so the tokens fall into runs that choose the
/// same experts.
void add_limited_runs(const Counts& rows, const Order& expert, const RowDraw& r, int rank,
                      Counts& mine) {
    const int size = r.experts / r.ep;
    Choices taker{};  // expert, by fullness, that takes the j-th choice
    std::array<std::int64_t, kMostChoices> until{};  // token up to which it takes the j-th choice
    Choices chosen{};
    Choices group{};
    const auto take = [&](int j, int i) {
        const int index = expert[at(i)];
        const int home = index / size;  // the fullest rank has changed places with the first
        taker[at(j)] = i;
        chosen[at(j)] = index + (home == rank ? -rank : home == 0 ? rank : 0) * size;
        group[at(j)] = chosen[at(j)] / (r.experts / r.groups);
    };
    std::int64_t place = 0;
    for (int j = 0, i = 0; j < r.top_k; ++j) {
        while (i < r.experts - 1 && place + rows[at(i)] <= j * r.tokens) place += rows[at(i++)];
        take(j, i);
        until[at(j)] = place + rows[at(i)] - j * r.tokens;
    }
    for (std::int64_t t = 0; t < r.tokens;) {
        std::int64_t end = r.tokens;
        for (int j = 0; j < r.top_k; ++j) {
            while (until[at(j)] <= t && taker[at(j)] < r.experts - 1) {
                take(j, taker[at(j)] + 1);
                until[at(j)] += rows[at(taker[at(j)])];
            }
            if (until[at(j)] > t) end = std::min(end, until[at(j)]);
        }
        add_limited(r, chosen, group, static_cast<std::int32_t>(end - t), mine);
        t = end;
    }
}

/// What one order of the experts leaves on the fullest rank.
void add_draw(ExpertRows& sum, const Counts& rows, const Order& expert, const RowDraw& r) {
    const int size = r.experts / r.ep;
    Counts by_index;
    for (int i = 0; i < r.experts; ++i) by_index[at(expert[at(i)])] = rows[at(i)];
    int fullest = 0;
    std::int64_t most = -1;
    for (int rank = 0; rank < r.ep; ++rank) {
        std::int64_t load = 0;
        for (int e = 0; e < size; ++e) load += by_index[at(rank * size + e)];
        if (load > most) {
            most = load;
            fullest = rank;
        }
    }
    if (r.groups > 1) {
        Counts mine{};
        add_limited_runs(rows, expert, r, fullest, mine);
        add(sum, mine.data(), size);
        return;
    }
    std::int32_t* mine = by_index.data() + fullest * size;
    const auto most_rows = static_cast<std::int32_t>(r.tokens);
    std::int32_t over = 0;
    for (int e = 0; e < size; ++e) {
        over += std::max(mine[e] - most_rows, 0);
        mine[e] = std::min(mine[e], most_rows);
    }
    for (int e = 0; e < size && over > 0; ++e) {
        const std::int32_t moved = std::min(over, most_rows - mine[e]);
        mine[e] += moved;
        over -= moved;
    }
    add(sum, mine, size);
}

ExpertRows power_law(const RowDraw& r) {
    const Counts rows = power_law_rows(r);
    Order expert;
    ExpertRows sum;
    std::uint64_t random = 0x9e3779b97f4a7c15U;
    // One rank holds the same whatever the order; limited choice is dear, one order must do.
    const int draws = r.ep == 1 || r.groups > 1 ? 1 : kDraws;
    for (int draw = 0; draw < draws; ++draw) {
        shuffle(expert, r.experts, random);
        add_draw(sum, rows, expert, r);
    }
    return mean(sum, draws);
}

}  // namespace

ExpertRows expert_rows(const RowDraw& r) {
    return r.alpha == 0 ? balanced(r) : power_law(r);
}

ExpertRows expert_rows(const std::int32_t* rows, int experts) {
    ExpertRows sum;
    add(sum, rows, experts);
    return sum;
}

}  // namespace moehub
