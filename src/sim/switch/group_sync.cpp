#include "sim/switch/group_sync.hpp"

#include "sim/fabric.hpp"

#include <algorithm>
#include <stdexcept>

namespace moehub::sim {

std::span<const Event> GroupSync::take(Fabric& fabric, const Event& event) {
    out_.clear();
    const Train& train = event.train;
    if (train.phase != Phase::tail) fabric.release(train.hold, event.time, train.flits);
    if (train.phase == Phase::head) return out_;
    const Transfer& transfer = fabric.transfer(train.transfer);
    const Bytes offset = train.index * fabric.train_bytes(*wire_);
    const std::uint64_t address = transfer.address + static_cast<std::uint64_t>(offset);
    std::vector<Train>& came = waiting_[address];
    if (std::any_of(came.begin(), came.end(),
                    [&](const Train& other) { return other.src == train.src; })) {
        throw std::logic_error("a GPU meets others where it still waits for them");
    }
    came.push_back(train);
    stats_.deepest = std::max(stats_.deepest, static_cast<std::int64_t>(waiting_.size()));
    if (came.size() < transfer.target.merge) return out_;
    ++stats_.meetings;
    for (const Train& one : came) answer(one, event.time);
    waiting_.erase(address);
    return out_;
}

void GroupSync::answer(const Train& train, Ps now) {
    Train& ack = out_.emplace_back(Event{train, now, 0}).train;
    ack.kind = Kind::ack;
    ack.phase = Phase::whole;
    ack.hold = kNoPool;
    ack.merge = false;
    ack.flits = wire_->flits(Kind::ack, ack.bytes, ack.packets, 0);
    ack.dst = ack.src;
}

}  // namespace moehub::sim
