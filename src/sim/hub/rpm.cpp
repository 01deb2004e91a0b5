#include "sim/hub/rpm.hpp"

#include <algorithm>
#include <stdexcept>

namespace moehub::sim {
namespace {

bool full(const RpmLine& line) {
    return line.bytes == line.whole;
}

Ps may_leave(const RpmLine& line, Ps timer) {
    return full(line) ? line.last : std::max(line.last, line.since + timer);
}

}  // namespace

void RpmPartition::add(const RpmLine& line, RpmStats& stats) {
    if (line.bytes == 0 || line.bytes > line.whole || line.packets == 0)
        throw std::logic_error("RPM: a line of nothing, or of more than its bytes");
    if (!fits()) throw std::logic_error("RPM: a store into a full partition");
    if (line.plane >= planes_.size()) planes_.resize(line.plane + std::size_t{1});
    queue(line);
    used_ += line.packets;
    stats.deepest = std::max<std::int64_t>(stats.deepest, used_);
    stats.stores += line.packets;
}

std::optional<RpmPartition::Choice> RpmPartition::choose(std::uint8_t number, Ps now) const {
    if (number >= planes_.size()) return std::nullopt;
    Plane& plane = planes_[number];
    now_ = std::max(now_, now);
    while (plane.soonest <= now_) {
        plane.due[plane.waiting.front().line.low_priority].push(plane.waiting.front());
        plane.waiting.pop();
        plane.look_ahead();
    }
    const std::size_t first = number * kQueues;
    if (!plane.due[0].empty()) return Choice{first, plane.due[0].front().from};
    if (!plane.due[1].empty()) return Choice{first + 1, plane.due[1].front().from};
    if (plane.soonest == kNever) return std::nullopt;
    return Choice{first + kWaiting, plane.soonest};
}

const RpmPartition::Held& RpmPartition::front(std::size_t slot) const {
    const Plane& plane = planes_[slot / kQueues];
    const std::size_t queue = slot % kQueues;
    return queue == kWaiting ? plane.waiting.front() : plane.due[queue].front();
}

RpmLine RpmPartition::take(std::size_t slot, RpmStats& stats) {
    const RpmLine line = front(slot).line;
    Plane& plane = planes_[slot / kQueues];
    const std::size_t queue = slot % kQueues;
    if (queue == kWaiting) {
        plane.waiting.pop();
        plane.look_ahead();
    } else {
        plane.due[queue].pop();
    }
    used_ -= line.packets;
    stats.packets += line.packets;
    (full(line) ? stats.full : stats.timed_out) += line.packets;
    return line;
}

/// Puts a line where its time belongs.
void RpmPartition::queue(const RpmLine& line) const {
    Plane& plane = planes_[line.plane];
    const Held held{line, may_leave(line, timer_)};
    if (held.from <= now_) {
        plane.due[line.low_priority].push(held);
    } else {
        plane.waiting.push(held);
        plane.soonest = std::min(plane.soonest, held.from);
    }
}

}  // namespace moehub::sim
