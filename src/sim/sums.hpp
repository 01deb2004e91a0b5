/// What a train says of rows that switches add up: for each row that it touches who is in the sum,
/// and, where rows carry numbers, the sum of each line.
///
/// Who is in a sum is the sum of the identities of its rows (64 bits each, well mixed): one left
/// out or added twice gives another number.
#pragma once
#include "base/rng.hpp"
#include "sim/event.hpp"
#include "sim/queues.hpp"

#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

namespace moehub::sim {

inline std::uint64_t identity_of(std::uint64_t x) {
    return mixed_bits(x * 0x9e3779b97f4a7c15u);
}

/// The identities of the rows that a train touches. Nearly always that is one, which takes no
/// memory of its own: millions of packets have one each.
class Identities {
  public:
    bool empty() const { return size_ == 0; }
    std::size_t size() const { return size_; }
    std::uint64_t& operator[](std::size_t at) { return at == 0 ? first_ : more_[at - 1]; }
    std::uint64_t operator[](std::size_t at) const { return at == 0 ? first_ : more_[at - 1]; }
    void push_back(std::uint64_t identity) {
        if (size_++ == 0) {
            first_ = identity;
        } else {
            more_.push_back(identity);
        }
    }
    void clear() {
        size_ = 0;
        more_.clear();
    }

  private:
    std::size_t size_ = 0;
    std::uint64_t first_ = 0;
    std::vector<std::uint64_t> more_;
};

struct Sum {
    Identities identities;        ///< identities of the rows that the train touches, in their order
    std::vector<double> numbers;  ///< a number for each line; none where rows carry none

    void add(const Sum& other) {
        if (identities.empty()) {
            *this = other;
            return;
        }
        if (identities.size() != other.identities.size() ||
            numbers.size() != other.numbers.size()) {
            throw std::logic_error("sums of different rows were to be added");
        }
        for (std::size_t i = 0; i < identities.size(); ++i) identities[i] += other.identities[i];
        for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] += other.numbers[i];
    }
};

/// The sums of all trains underway.
class SumStore {
  public:
    SumId add(Sum sum) {
        const SumId id = sums_.take();
        sums_[id] = std::move(sum);
        return id;
    }
    /// Adds `part` to `sum` and forgets it.
    void merge(SumId sum, SumId part) {
        sums_[sum].add(sums_[part]);
        forget(part);
    }
    const Sum& operator[](SumId id) const { return sums_[id]; }
    /// What it had room for is kept for the next.
    void forget(SumId id) {
        sums_[id].identities.clear();
        sums_[id].numbers.clear();
        sums_.give_back(id);
    }
    SumId copy(SumId id) { return add(sums_[id]); }

  private:
    Reused<Sum> sums_;
};

}  // namespace moehub::sim
