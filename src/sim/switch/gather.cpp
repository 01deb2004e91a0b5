#include "sim/switch/gather.hpp"

#include "sim/fabric.hpp"

#include <algorithm>
#include <set>
#include <stdexcept>

namespace moehub::sim {
namespace {

/// How the end of a sum goes on: behind its first packet where that went by itself, as the first
/// answer's did. Whoever comes last may have come in one piece where others did not: a GPU's answer
/// of several packets, one for each of its results, and another's of one.
Phase last_phase(const Train& first) {
    return first.phase == Phase::head ? Phase::tail : Phase::whole;
}

}  // namespace

Gather::Key Gather::key_of(const Fabric& fabric, const Train& train) const {
    const Transfer& transfer = fabric.transfer(train.transfer);
    const Bytes offset = train.index * fabric.train_bytes(*wire_);
    return {transfer.address + static_cast<std::uint64_t>(offset), transfer.group, train.dst,
            train.kind == EventKind::data};
}

std::span<const Event> Gather::take(Fabric& fabric, const Event& answer) {
    out_.clear();
    const Train& train = answer.train;
    const Key key = key_of(fabric, train);
    const std::span<const GpuId> members = fabric.groups().members(key.group);
    const auto member = static_cast<std::size_t>(
        std::lower_bound(members.begin(), members.end(), train.src) - members.begin());
    const bool begins = train.phase != Phase::tail;
    const EntryId id = entry_of(key, member, members.size(), begins);
    if (begins) begin(id, member, answer);
    if (train.phase != Phase::head) end(fabric, id, member, answer);
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
    const EntryId id = entries_.take();
    Entry& entry = entries_[id];
    entry.key = key;
    entry.missing = static_cast<std::uint32_t>(members);
    entry.later = kNone;
    entry.number = ++opened_;
    entry.batch_of.assign(members, kNotYet);
    entry.batches.clear();
    return id;
}

/// Removes a request: of those with one key the first is through first.
void Gather::remove(EntryId id) {
    Entry& entry = entries_[id];
    entry.number = 0;
    entries_.give_back(id);
    if (entry.later == kNone)
        index_.erase(entry.key);
    else
        index_[entry.key] = entry.later;
}

void Gather::begin(EntryId id, std::size_t member, const Event& answer) {
    Entry& entry = entries_[id];
    stats_.answers += answer.train.packets;
    if (answer.train.packets > 1) trains_ = true;
    if (entry.key.data && trains_) make_room(answer.time);  // what waits has grown since
    const bool alone = entry.batches.empty() || entry.batches.back().closed;
    if (alone) {
        Batch& made = entry.batches.emplace_back();
        made.train = answer.train;
        made.train.hold = kNoPool;
        made.train.answers = 0;
        made.train.sum = kNoSum;
        if (entry.key.data) {  // one sum goes on, also of several that one GPU sent
            made.train.packets = wire_->packets(made.train.bytes);
            made.train.flits =
                wire_->flits(EventKind::data, made.train.bytes, made.train.packets, 0);
        }
        made.since = answer.time;
    }
    Batch& batch = entry.batches.back();
    if (batch.train.transfer != answer.train.transfer)
        throw std::logic_error("answers to different requests were gathered");
    ++batch.train.answers;
    entry.batch_of[member] = static_cast<std::uint16_t>(entry.batches.size() - 1);
    const bool data = entry.key.data;
    if (--entry.missing == 0) {
        if (data && !alone) waiting_packets_ -= batch.train.packets;
        close(batch, answer.time);
        stats_.gathered += batch.train.packets;
    } else if (data) {
        if (alone) {
            waiting_packets_ += batch.train.packets;
            waiting_.push_back({id, entry.number, entry.batches.size() - 1});
        }
        make_room(answer.time);
    }
}

void Gather::end(Fabric& fabric, EntryId id, std::size_t member, const Event& answer) {
    Entry& entry = entries_[id];
    Batch& batch = entry.batches[entry.batch_of[member]];
    if (batch.train.sum == kNoSum)
        batch.train.sum = answer.train.sum;
    else if (answer.train.sum != kNoSum)
        fabric.sums().merge(batch.train.sum, answer.train.sum);
    ++batch.ended;
    if (batch.closed && batch.ended == batch.train.answers)
        pass(batch, last_phase(batch.train), answer.time);
    const auto through = [](const Batch& one) {
        return one.closed && one.ended == one.train.answers;
    };
    if (entry.missing == 0 && std::all_of(entry.batches.begin(), entry.batches.end(), through))
        remove(id);
}

/// Closes a batch: its first packet can go on, and the last once it is there.
void Gather::close(Batch& batch, Ps now) {
    batch.closed = true;
    if (batch.train.phase == Phase::head) pass(batch, Phase::head, now);
}

void Gather::pass(const Batch& batch, Phase phase, Ps now) {
    Event& passed = out_.emplace_back(Event{batch.train, now, 0});
    passed.train.phase = phase;
    if (phase == Phase::head) passed.train.sum = kNoSum;
}

std::int64_t Gather::charge(const Batch& batch, Ps now) const {
    const Ps packet = wire_->serialise(first_packet_flits(batch.train));
    return std::min<std::int64_t>(batch.train.packets,
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
    std::int64_t charged = trains_ ? 0 : waiting_packets_;  // single packets take one each
    for (std::size_t i = 0; trains_ && i < waiting_.size(); ++i) {
        const Waiting& one = waiting_[i];
        if (const Batch* batch = open_batch(one)) charged += charge(*batch, now);
    }
    for (; charged > room_ && !waiting_.empty(); waiting_.pop_front()) {
        Batch* const batch = open_batch(waiting_.front());
        if (batch == nullptr) continue;
        charged -= charge(*batch, now);
        waiting_packets_ -= batch->train.packets;
        stats_.evicted += batch->train.packets;
        close(*batch, now);
        if (batch->ended == batch->train.answers) pass(*batch, last_phase(batch->train), now);
    }
    stats_.deepest = std::max(stats_.deepest, std::min(charged, room_));
}

NetworkSums::Key NetworkSums::key_of(const Fabric& fabric, const Train& train) const {
    const Transfer& transfer = fabric.transfer(train.transfer);
    const Bytes offset = train.index * fabric.train_bytes(fabric.wire_of_uplink(train.plane));
    return {transfer.group, transfer.address + static_cast<std::uint64_t>(offset)};
}

/// Parts that make a sum: at a leaf its GPUs in the group, at a spine the leaves with some.
std::size_t NetworkSums::parts(const Fabric& fabric, GroupId group) {
    const auto [found, first] = parts_.try_emplace(group, 0);
    if (!first) return found->second;
    const Topology& topology = fabric.topology();
    std::set<SwitchId> leaves;
    for (const GpuId member : fabric.groups().members(group)) {
        leaves.insert(topology.leaf(member));
        if (topology.leaf(member) == number_) ++found->second;
    }
    if (topology.tier(number_) == Topology::Tier::spine) found->second = leaves.size();
    return found->second;
}

std::span<const Event> NetworkSums::take(Fabric& fabric, const Event& event) {
    out_.clear();
    const Train& train = event.train;
    fabric.release(train.hold, event.time, train.flits);
    const Key key = key_of(fabric, train);
    std::vector<Train>& came = waiting_[key];
    if (train.kind == EventKind::atomic) came.push_back(train);
    if (train.kind == EventKind::atomic && came.size() < parts(fabric, key.first)) return out_;
    const bool spine = fabric.topology().tier(number_) == Topology::Tier::spine;
    const bool all = spine || came.size() == fabric.groups().members(key.first).size();
    if (train.kind == EventKind::atomic && !all) {
        out_.push_back({came.front(), event.time, 0});
        out_.back().train.hold = kNoPool;
        return out_;
    }
    for (const Train& part : came) answer(fabric, part, event.time);
    waiting_.erase(key);
    return out_;
}

void NetworkSums::answer(const Fabric& fabric, const Train& part, Ps now) {
    Train& sum = out_.emplace_back(Event{part, now, 0}).train;
    sum.kind = EventKind::data;
    sum.hold = kNoPool;
    sum.src = part.dst;
    sum.dst = part.src;
    sum.flits =
        fabric.wire_of_uplink(part.plane).flits(EventKind::data, part.bytes, part.packets, 0);
}

/// A part goes to the spine that its address is added up at; a sum to whoever sent a part.
std::uint32_t NetworkSums::port(const Fabric& fabric, const Train& train) const {
    const Topology& topology = fabric.topology();
    if (train.kind == EventKind::data) return topology.port_towards(number_, train);
    const Key key = key_of(fabric, train);
    const auto lines = static_cast<std::uint64_t>(train.bytes);
    return topology.leaf_nodes +
           static_cast<std::uint32_t>((key.first + key.second / lines) % topology.spines);
}

}  // namespace moehub::sim
