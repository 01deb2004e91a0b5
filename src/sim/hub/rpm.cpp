#include "sim/hub/rpm.hpp"

#include <algorithm>
#include <stdexcept>
#include <tuple>

namespace moehub::sim {
namespace {

bool full(const RpmLine& line) {
    return line.bytes == line.whole;
}

std::size_t hash(TransferId transfer, std::uint32_t index) {
    const std::uint64_t key = std::uint64_t{transfer} << 32 | index;
    return static_cast<std::size_t>((key ^ key >> 32) * 0x9e3779b97f4a7c15U >> 32);
}

void merge(RpmLine& into, const RpmLine& store) {
    if (store.bytes > into.whole - into.bytes) {
        throw std::logic_error("RPM: a line was given more than its bytes");
    }
    into.bytes += store.bytes;
    into.since = std::min(into.since, store.since);
    into.last = std::max(into.last, store.last);
}

}  // namespace

Ps RpmPartition::may_leave(const RpmLine& line) const {
    return full(line) ? line.last : std::max(line.last, line.since + timer_);
}

void RpmPartition::store(const RpmLine& line, RpmStats& stats) {
    if (line.bytes == 0 || line.bytes > line.whole || line.packets == 0) {
        throw std::logic_error("RPM: a store of nothing, or of more than its line");
    }
    const std::uint32_t slot = find(line.transfer, line.index, line.low_priority);
    if (slot != kNoSlot) {
        RpmLine& into = slots_[slot].line;
        merge(into, line);
        unschedule(planes_[into.plane], slot);
        schedule(planes_[into.plane], slot);
        stats.merged += line.packets;
    } else {
        if (!fits(line.packets)) throw std::logic_error("RPM: a store into a full partition");
        insert(line);
        stats.deepest = std::max<std::int64_t>(stats.deepest, used_);
    }
    stats.stores += line.packets;
}

std::optional<RpmPartition::Choice> RpmPartition::choose(std::uint8_t number, Ps now) const {
    if (number >= planes_.size()) return std::nullopt;
    Plane& plane = planes_[number];
    plane.now = std::max(plane.now, now);
    while (!plane.waiting.empty() && plane.waiting.front().from <= plane.now) {
        const std::uint32_t slot = plane.waiting.front().slot;
        unschedule(plane, slot);
        schedule(plane, slot);
    }
    const Heap& heap = plane.due.empty() ? plane.waiting : plane.due;
    if (heap.empty()) return std::nullopt;
    const std::uint32_t slot = heap.front().slot;
    return Choice{slot, may_leave(slots_[slot].line)};
}

RpmLine RpmPartition::take(std::size_t number, RpmStats& stats) {
    const auto slot = static_cast<std::uint32_t>(number);
    const RpmLine line = slots_[slot].line;
    unschedule(planes_[line.plane], slot);
    std::uint32_t* link = &bucket(line.transfer, line.index);
    while (*link != slot) link = &slots_[*link].next;
    *link = slots_[slot].next;
    slots_[slot].next = free_;
    free_ = slot;
    --lines_;
    used_ -= line.packets;
    stats.packets += line.packets;
    (full(line) ? stats.full : stats.timed_out) += line.packets;
    return line;
}

// The lines, by (transfer, index, priority): buckets of slots.

std::uint32_t RpmPartition::find(TransferId transfer, std::uint32_t index,
                                 bool low_priority) const {
    if (buckets_.empty()) return kNoSlot;
    std::uint32_t slot = buckets_[hash(transfer, index) & (buckets_.size() - 1)];
    for (; slot != kNoSlot; slot = slots_[slot].next) {
        const RpmLine& line = slots_[slot].line;
        if (line.transfer == transfer && line.index == index && line.low_priority == low_priority) {
            break;
        }
    }
    return slot;
}

std::uint32_t& RpmPartition::bucket(TransferId transfer, std::uint32_t index) {
    return buckets_[hash(transfer, index) & (buckets_.size() - 1)];
}

void RpmPartition::insert(const RpmLine& line) {
    if (lines_ == buckets_.size()) rehash();
    std::uint32_t slot = free_;
    if (slot == kNoSlot) {
        slot = static_cast<std::uint32_t>(slots_.size());
        slots_.emplace_back();
    } else {
        free_ = slots_[slot].next;
    }
    std::uint32_t& first = bucket(line.transfer, line.index);
    slots_[slot].line = line;
    slots_[slot].next = first;
    first = slot;
    ++lines_;
    used_ += line.packets;
    if (line.plane >= planes_.size()) planes_.resize(line.plane + std::size_t{1});
    schedule(planes_[line.plane], slot);
}

/// Called when all slots are in use: as many as there are buckets.
void RpmPartition::rehash() {
    buckets_.assign(std::max<std::size_t>(16, 2 * buckets_.size()), kNoSlot);
    for (std::uint32_t slot = 0; slot < slots_.size(); ++slot) {
        std::uint32_t& first = bucket(slots_[slot].line.transfer, slots_[slot].line.index);
        slots_[slot].next = first;
        first = slot;
    }
}

// When lines leave: two heaps per plane.

void RpmPartition::schedule(Plane& plane, std::uint32_t slot) const {
    const RpmLine& line = slots_[slot].line;
    const Ps from = may_leave(line);
    const bool due = from <= plane.now;
    slots_[slot].due = due;
    push(due ? plane.due : plane.waiting,
         {.from = due ? 0 : from,
          .major = std::uint64_t{line.low_priority} << 32 | line.row_id,
          .minor = std::uint64_t{line.index} << 32 | line.transfer,
          .slot = slot});
}

void RpmPartition::unschedule(Plane& plane, std::uint32_t slot) const {
    pop(slots_[slot].due ? plane.due : plane.waiting, slots_[slot].place);
}

void RpmPartition::push(Heap& heap, const Node& node) const {
    heap.emplace_back();
    settle(heap, heap.size() - 1, node);
}

void RpmPartition::pop(Heap& heap, std::size_t place) const {
    const Node moved = heap.back();
    heap.pop_back();
    if (place < heap.size()) settle(heap, place, moved);
}

/// Puts a node into the hole at `place`, or where it belongs above or below.
void RpmPartition::settle(Heap& heap, std::size_t place, const Node& node) const {
    const auto before = [](const Node& a, const Node& b) {
        return std::tie(a.from, a.major, a.minor) < std::tie(b.from, b.major, b.minor);
    };
    const auto put = [&](std::size_t at, const Node& what) {
        heap[at] = what;
        slots_[what.slot].place = static_cast<std::uint32_t>(at);
    };
    for (; place > 0 && before(node, heap[(place - 1) / 2]); place = (place - 1) / 2) {
        put(place, heap[(place - 1) / 2]);
    }
    for (std::size_t child; (child = 2 * place + 1) < heap.size(); place = child) {
        if (child + 1 < heap.size() && before(heap[child + 1], heap[child])) ++child;
        if (!before(heap[child], node)) break;
        put(place, heap[child]);
    }
    put(place, node);
}

}  // namespace moehub::sim
