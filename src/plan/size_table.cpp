// Sizes go by factors of two from 4 MiB on, where protocols change; 64 KiB stands for all that is
// smaller.
#include "plan/size_table.hpp"

#include <algorithm>
#include <utility>

namespace moehub {
namespace {

constexpr Bytes kSmallest = Bytes{1} << 16;
constexpr Bytes kSecond = Bytes{1} << 20;
constexpr Bytes kThird = Bytes{1} << 22;

Bytes size_of(int index) {
    if (index < 2) return index == 0 ? kSmallest : kSecond;
    return kThird << (index - 2);
}

}  // namespace

SizeTable::SizeTable(Simulate simulate, double linear_from) : simulate_(std::move(simulate)) {
    while (points_ < kMostPoints && static_cast<double>(size_of(points_ - 1)) < linear_from)
        ++points_;
}

/// All smaller ones are known then, too, so that what was larger there counts here.
double SizeTable::point(int index) {
    if (index >= known_.load(std::memory_order_acquire)) {
        const std::lock_guard lock(simulating_);
        for (int i = known_.load(std::memory_order_relaxed); i <= index; ++i) {
            const auto at = static_cast<std::size_t>(i);
            times_[at] = std::max(simulate_(size_of(i)), i > 0 ? times_[at - 1] : 0.0);
            known_.store(i + 1, std::memory_order_release);
        }
    }
    return times_[static_cast<std::size_t>(index)];
}

double SizeTable::at(double bytes) {
    if (bytes <= 0) return 0;
    if (bytes <= static_cast<double>(kSmallest)) return point(0);
    int above = 1;
    while (above + 1 < points_ && static_cast<double>(size_of(above)) < bytes) ++above;
    const double end = point(above);
    const double begin = point(above - 1);
    const auto from = static_cast<double>(size_of(above - 1));
    const double share = (bytes - from) / (static_cast<double>(size_of(above)) - from);
    return begin + (end - begin) * share;
}

}  // namespace moehub
