#include "place/exact/exact_placements.hpp"

#include <algorithm>
#include <bit>
#include <map>

namespace moehub {

double count_placements(int experts, int gpus) {
    constexpr double kMany = 1e9;
    const int slots = experts / gpus;
    double count = 1;
    // experts! / slots!^gpus, GPU by GPU, expert by expert.
    for (int left = experts; left > slots && count < kMany; left -= slots) {
        double ways = 1;
        for (int slot = 0; slot < slots && ways < kMany; ++slot)
            ways = ways * (left - slot) / (slot + 1);
        count *= ways;
    }
    return count;
}

LayerPlacements::LayerPlacements(const Shape& shape) : shape_(shape) {
    const int slots = shape.experts / shape.gpus;
    const unsigned all = (1U << shape.experts) - 1;
    for (unsigned set = 1; set <= all; ++set)
        if (std::popcount(set) == slots) sets_.push_back(static_cast<ExpertSet>(set));
    std::vector<std::uint16_t> numbers;
    fill(0, all, numbers);
    find_orbits();
}

void LayerPlacements::fill(int gpu, unsigned left, std::vector<std::uint16_t>& numbers) {
    if (gpu == shape_.gpus) {
        numbers_.insert(numbers_.end(), numbers.begin(), numbers.end());
        return;
    }
    for (std::size_t number = 0; number < sets_.size(); ++number) {
        if ((sets_[number] & left) != sets_[number]) continue;
        numbers.push_back(static_cast<std::uint16_t>(number));
        fill(gpu + 1, left & ~unsigned{sets_[number]}, numbers);
        numbers.pop_back();
    }
}

/// The same but for names: within nodes by number of the set, nodes by their first.
std::vector<std::uint16_t> LayerPlacements::canonical(
    std::span<const std::uint16_t> numbers) const {
    std::vector<std::vector<std::uint16_t>> nodes;
    for (int gpu = 0; gpu < shape_.gpus; gpu += gpus_per_node()) {
        const auto begin = numbers.begin() + gpu;
        auto& node = nodes.emplace_back(begin, begin + gpus_per_node());
        std::sort(node.begin(), node.end());
    }
    std::sort(nodes.begin(), nodes.end());
    std::vector<std::uint16_t> joined;
    for (const auto& node : nodes) joined.insert(joined.end(), node.begin(), node.end());
    return joined;
}

void LayerPlacements::find_orbits() {
    const std::size_t count = numbers_.size() / static_cast<std::size_t>(shape_.gpus);
    orbit_.reserve(count);
    std::map<std::vector<std::uint16_t>, int> known;
    for (int placement = 0; placement < static_cast<int>(count); ++placement) {
        const auto own = numbers(placement);
        auto key = shape_.named ? std::vector(own.begin(), own.end()) : canonical(own);
        const auto [entry, is_new] = known.try_emplace(std::move(key), orbits());
        if (is_new) first_.push_back(placement);
        orbit_.push_back(entry->second);
    }
}

std::vector<ExpertSet> LayerPlacements::sets_of(int placement) const {
    std::vector<ExpertSet> result;
    for (const std::uint16_t number : numbers(placement)) result.push_back(sets_[number]);
    return result;
}

}  // namespace moehub
