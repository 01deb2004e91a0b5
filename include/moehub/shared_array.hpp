/// Numbers that many values share and nobody changes: copying one copies no number. They lie in
/// memory of its own, taken over from a vector, or in someone else's, which is kept alive.
#pragma once
#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

namespace moehub {

template <class Value>
class SharedArray {
  public:
    SharedArray() = default;
    /// Takes the vector over.
    SharedArray(std::vector<Value> values) {
        auto owned = std::make_shared<const std::vector<Value>>(std::move(values));
        values_ = *owned;
        owner_ = std::move(owned);
    }
    SharedArray(std::initializer_list<Value> values) : SharedArray(std::vector<Value>(values)) {}
    /// Memory of someone else's, who must not change it while any copy of this lives. `owner` is
    /// released after the last of them, by whichever thread that is.
    SharedArray(std::span<const Value> values, std::shared_ptr<const void> owner)
        : values_(values), owner_(std::move(owner)) {}

    const Value* data() const { return values_.data(); }
    std::size_t size() const { return values_.size(); }
    bool empty() const { return values_.empty(); }
    auto begin() const { return values_.begin(); }
    auto end() const { return values_.end(); }
    const Value& operator[](std::size_t i) const { return values_[i]; }

    /// Some of them, in the same memory. Throws std::out_of_range.
    SharedArray part(std::size_t first, std::size_t count) const {
        if (first > size() || count > size() - first)
            throw std::out_of_range("SharedArray: a part beyond its end");
        return {values_.subspan(first, count), owner_};
    }

    /// To change and to share again.
    std::vector<Value> copy() const { return {begin(), end()}; }

    bool operator==(const SharedArray& other) const {
        return std::equal(begin(), end(), other.begin(), other.end());
    }

  private:
    std::span<const Value> values_;
    std::shared_ptr<const void> owner_;
};

}  // namespace moehub
