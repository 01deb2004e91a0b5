#include "sim/sums.hpp"

#include <stdexcept>
#include <utility>

namespace moehub::sim {

void Sum::add(const Sum& other) {
    if (identities.empty()) {
        *this = other;
        return;
    }
    if (identities.size() != other.identities.size() || numbers.size() != other.numbers.size()) {
        throw std::logic_error("sums of different rows were to be added");
    }
    for (std::size_t i = 0; i < identities.size(); ++i) identities[i] += other.identities[i];
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] += other.numbers[i];
}

SumId SumStore::add(Sum sum) {
    if (free_.empty()) {
        free_.push_back(static_cast<SumId>(sums_.size()));
        sums_.emplace_back();
    }
    const SumId id = free_.back();
    free_.pop_back();
    sums_[id] = std::move(sum);
    return id;
}

void SumStore::merge(SumId sum, SumId part) {
    sums_[sum].add(sums_[part]);
    forget(part);
}

/// What it had room for is kept for the next.
void SumStore::forget(SumId id) {
    sums_[id].identities.clear();
    sums_[id].numbers.clear();
    free_.push_back(id);
}

}  // namespace moehub::sim
