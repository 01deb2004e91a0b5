#include "sim/switch/gather.hpp"

#include "sim/fabric.hpp"

#include <algorithm>
#include <stdexcept>

namespace moehub::sim {

Gather::Key Gather::key_of(const Fabric& fabric, const Unit& unit) const {
    const Transfer& transfer = fabric.transfer(unit.transfer);
    const Bytes offset = unit.index * fabric.unit_bytes(*wire_);
    return {transfer.address + static_cast<std::uint64_t>(offset), transfer.group, unit.dst,
            unit.kind == Kind::data};
}

std::span<const Event> Gather::take(Fabric& fabric, const Event& answer) {
    out_.clear();
    const Unit& unit = answer.unit;
    const Key key = key_of(fabric, unit);
    const std::span<const GpuId> members = fabric.groups().members(key.group);
    const auto member = static_cast<std::size_t>(
        std::lower_bound(members.begin(), members.end(), unit.src) - members.begin());
    const bool begins = unit.phase != Phase::tail;
    const EntryId id = entry_of(key, member, members.size(), begins);
    if (begins) begin(id, member, answer);
    if (unit.phase != Phase::head) end(fabric, id, member, answer);
    return out_;
}

/// The first request that lacks the beginning of this GPU's answer; for the end of an answer the
/// last that has its beginning.
Gather::EntryId Gather::entry_of(const Key& key, std::size_t member, std::size_t members,
                                 bool begins) {
    const auto found = index_.find(key);
    if (found == index_.end()) {
        if (!begins) throw std::logic_error("an answer ends that never began");
        const EntryId id = add_entry(key, members);
        index_.emplace(key, id);
        return id;
    }
    EntryId id = found->second;
    const auto begun = [&](EntryId entry) { return entries_[entry].batch_of[member] != kNotYet; };
    if (!begins) {
        while (entries_[id].later != kNone && begun(entries_[id].later)) id = entries_[id].later;
        return id;
    }
    while (begun(id)) {
        if (entries_[id].later == kNone) {
            const EntryId later = add_entry(key, members);
            entries_[id].later = later;
            return later;
        }
        id = entries_[id].later;
    }
    return id;
}

Gather::EntryId Gather::add_entry(const Key& key, std::size_t members) {
    if (free_.empty()) {
        free_.push_back(static_cast<EntryId>(entries_.size()));
        entries_.emplace_back();
    }
    const EntryId id = free_.back();
    free_.pop_back();
    Entry& entry = entries_[id];
    entry.key = key;
    entry.missing = static_cast<std::uint32_t>(members);
    entry.later = kNone;
    entry.number = ++opened_;
    entry.batch_of.assign(members, kNotYet);
    entry.batches.clear();
    return id;
}

/// Of requests with one key the first is through first.
void Gather::remove(EntryId id) {
    Entry& entry = entries_[id];
    entry.number = 0;
    free_.push_back(id);
    if (entry.later == kNone) {
        index_.erase(entry.key);
    } else {
        index_[entry.key] = entry.later;
    }
}

void Gather::begin(EntryId id, std::size_t member, const Event& answer) {
    Entry& entry = entries_[id];
    stats_.answers += answer.unit.packets;
    if (entry.key.data) make_room(answer.time);  // what waits has grown since
    const bool alone = entry.batches.empty() || entry.batches.back().closed;
    if (alone) {
        Batch& made = entry.batches.emplace_back();
        made.unit = answer.unit;
        made.unit.hold = kNoPool;
        made.unit.answers = 0;
        made.unit.sum = kNoSum;
        made.since = answer.time;
    }
    Batch& batch = entry.batches.back();
    if (batch.unit.transfer != answer.unit.transfer) {
        throw std::logic_error("answers to different requests were gathered");
    }
    ++batch.unit.answers;
    entry.batch_of[member] = static_cast<std::uint16_t>(entry.batches.size() - 1);
    const bool data = entry.key.data;
    if (--entry.missing == 0) {
        if (data && !alone) waiting_packets_ -= batch.unit.packets;
        close(batch, answer.time);
        stats_.gathered += batch.unit.packets;
    } else if (data) {
        if (alone) {
            waiting_packets_ += batch.unit.packets;
            waiting_.push_back({id, entry.number, entry.batches.size() - 1});
        }
        make_room(answer.time);
    }
}

void Gather::end(Fabric& fabric, EntryId id, std::size_t member, const Event& answer) {
    Entry& entry = entries_[id];
    Batch& batch = entry.batches[entry.batch_of[member]];
    if (batch.unit.sum == kNoSum) {
        batch.unit.sum = answer.unit.sum;
    } else if (answer.unit.sum != kNoSum) {
        fabric.sums().merge(batch.unit.sum, answer.unit.sum);
    }
    ++batch.ended;
    if (batch.closed && batch.ended == batch.unit.answers) {
        pass(batch, answer.unit.phase, answer.time);
    }
    const auto through = [](const Batch& one) {
        return one.closed && one.ended == one.unit.answers;
    };
    if (entry.missing == 0 && std::all_of(entry.batches.begin(), entry.batches.end(), through)) {
        remove(id);
    }
}

/// Nothing joins any more: its first packet can go on, and the last once it is there.
void Gather::close(Batch& batch, Ps now) {
    batch.closed = true;
    if (batch.unit.phase == Phase::head) pass(batch, Phase::head, now);
}

void Gather::pass(const Batch& batch, Phase phase, Ps now) {
    Event& passed = out_.emplace_back(Event{batch.unit, now, 0});
    passed.unit.phase = phase;
    if (phase == Phase::head) passed.unit.sum = kNoSum;
}

std::int64_t Gather::charge(const Batch& batch, Ps now) const {
    const Ps packet = wire_->serialise(first_packet_flits(batch.unit));
    return std::min<std::int64_t>(batch.unit.packets,
                                  1 + (now - batch.since) / std::max<Ps>(1, packet));
}

Gather::Batch* Gather::open_batch(const Waiting& waiting) {
    Entry& entry = entries_[waiting.entry];
    if (entry.number != waiting.number || entry.batches[waiting.batch].closed) return nullptr;
    return &entry.batches[waiting.batch];
}

/// Has the oldest partial sums go on until the rest fit.
void Gather::make_room(Ps now) {
    while (!waiting_.empty() && open_batch(waiting_.front()) == nullptr) waiting_.pop_front();
    if (waiting_packets_ <= room_) {
        stats_.deepest = std::max(stats_.deepest, waiting_packets_);
        return;
    }
    std::int64_t charged = 0;
    for (const Waiting& one : waiting_) {
        if (const Batch* batch = open_batch(one)) charged += charge(*batch, now);
    }
    for (; charged > room_ && !waiting_.empty(); waiting_.pop_front()) {
        Batch* const batch = open_batch(waiting_.front());
        if (batch == nullptr) continue;
        charged -= charge(*batch, now);
        waiting_packets_ -= batch->unit.packets;
        stats_.evicted += batch->unit.packets;
        close(*batch, now);
        if (batch->unit.phase != Phase::head || batch->ended == batch->unit.answers) {
            pass(*batch, batch->unit.phase == Phase::head ? Phase::tail : Phase::whole, now);
        }
    }
    stats_.deepest = std::max(stats_.deepest, std::min(charged, room_));
}

}  // namespace moehub::sim
