// With groups: group g, of share S_g, is to be among the token's groups with probability
// r_g = top_groups · S_g, cut at 1. Where it is, its expert e is to be chosen with probability
// top_k · s_e / r_g. These add up to top_k over any choice of groups that are not cut, so every
// expert gets its share in all. (The cut ones always take part; the sum holds with them too.)
#include "model/expert_draw.hpp"

#include "model/routing_shares.hpp"

#include <algorithm>
#include <numeric>

namespace moehub {
namespace {

std::vector<double> group_shares(const std::vector<double>& shares, GroupLimit limit) {
    const std::size_t size = shares.size() / static_cast<std::size_t>(limit.count);
    std::vector<double> sums(static_cast<std::size_t>(limit.count), 0.0);
    for (std::size_t i = 0; i < shares.size(); ++i) sums[i / size] += shares[i];
    return sums;
}

/// Weights of the experts of one group, of which `count` are to be chosen on average.
std::vector<double> weights_within(std::vector<double> shares, double count) {
    if (!(count > 0)) return std::vector<double>(shares.size(), 0.0);
    // One rounding above its size, `count` would ask for more than all.
    count = std::min(count, static_cast<double>(shares.size()));
    return draw_weights(capped(std::move(shares), 1 / count), count);
}

}  // namespace

ExpertDraw::ExpertDraw(const std::vector<double>& shares, int top_k, GroupLimit limit)
    : group_size_(shares.size() / static_cast<std::size_t>(limit.count)),
      top_groups_(static_cast<std::size_t>(limit.top)),
      groups_({}),
      is_open_(static_cast<std::size_t>(limit.count), false) {
    const std::vector<double> asked = group_shares(shares, limit);
    const std::vector<double> given = capped(asked, 1.0 / limit.top);
    groups_ = Urn(exact_draw_weights(given, limit.top));
    if (limit.count == 1) {
        experts_.emplace_back(exact_draw_weights(shares, top_k));
        return;
    }
    for (std::size_t g = 0; g < asked.size(); ++g) {
        const auto first = shares.begin() + static_cast<std::ptrdiff_t>(g * group_size_);
        const double count = given[g] > 0 ? top_k * asked[g] / (limit.top * given[g]) : 0;
        experts_.emplace_back(
            weights_within({first, first + static_cast<std::ptrdiff_t>(group_size_)}, count));
    }
}

void ExpertDraw::next_token() {
    for (const auto group : open_) is_open_[group] = false;
    open_.clear();
    open_total_ = 0;
    groups_.refill();
}

void ExpertDraw::open(std::size_t group) {
    open_.push_back(group);
    open_total_ += experts_[group].total();
    is_open_[group] = true;
    experts_[group].refill();
}

void ExpertDraw::allow_group(std::size_t group) {
    if (open_.size() < top_groups_ && groups_.take(group)) open(group);
}

void ExpertDraw::allow_groups(Rng& rng) {
    // All groups: no choice, and none of the random numbers that it would take.
    if (top_groups_ == experts_.size())
        for (std::size_t group = 0; group < top_groups_; ++group) allow_group(group);
    while (open_.size() < top_groups_) open(groups_.draw(rng));
}

bool ExpertDraw::take(std::uint16_t expert) {
    const std::size_t group = group_of(expert);
    return is_open_[group] && experts_[group].take(expert % group_size_);
}

std::uint16_t ExpertDraw::draw(Rng& rng) {
    for (const auto group : open_)
        if (const auto index = experts_[group].draw_certain(rng)) return expert(group, *index);
    // A try that hits a chosen expert is made again from the choice of the group on: else groups
    // with a chosen expert would be drawn too often.
    if (open_total_ > 0) {
        for (int i = 0; i < Urn::kTries; ++i) {
            const std::size_t group = some_open_group(rng);
            if (const auto index = experts_[group].try_draw(rng)) return expert(group, *index);
        }
    }
    const std::size_t group = some_open_group_with_any_left(rng);
    return expert(group, experts_[group].draw_left(rng));
}

std::size_t ExpertDraw::some_open_group(Rng& rng) const {
    if (open_.size() == 1) return open_.front();
    double passes = rng.uniform() * open_total_;
    std::size_t hit = open_.front();
    for (const auto group : open_) {
        const double weight = experts_[group].total();
        if (weight <= 0) continue;
        hit = group;
        if (passes < weight) break;
        passes -= weight;
    }
    return hit;
}

std::size_t ExpertDraw::some_open_group_with_any_left(Rng& rng) const {
    std::vector<double> weights;
    for (const auto group : open_) weights.push_back(experts_[group].weight_left());
    if (std::accumulate(weights.begin(), weights.end(), 0.0) <= 0)
        for (std::size_t i = 0; i < open_.size(); ++i)
            weights[i] = static_cast<double>(experts_[open_[i]].left());
    return open_[AliasTable(weights).draw(rng)];
}

}  // namespace moehub
