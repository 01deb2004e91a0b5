#include "sim/switch/merge_unit.hpp"

namespace moehub::sim {

std::size_t MergeTable::slot_of(const Key& key) const {
    std::uint64_t mixed = (key.address ^ (key.reduction ? 0x5bd1e995u : 0)) * 0x9e3779b97f4a7c15u;
    mixed ^= mixed >> 32;
    return static_cast<std::size_t>(mixed) & (slots_.size() - 1);
}

MergeTable::Id MergeTable::find(const Key& key) const {
    if (slots_.empty()) return kNone;
    for (std::size_t at = slot_of(key);; at = (at + 1) & (slots_.size() - 1)) {
        const Id id = slots_[at];
        if (id == kNone || entries_[id].key == key) return id;
    }
}

MergeTable::Id MergeTable::add(const Key& key) {
    if (2 * (filled_ + 1) > slots_.size()) grow();
    const Id id = entries_.take();
    entries_[id] = Entry{};
    entries_[id].key = key;
    std::size_t at = slot_of(key);
    while (slots_[at] != kNone) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = id;
    ++filled_;
    append(made_, id, &Entry::made);
    return id;
}

void MergeTable::grow() {
    std::vector<Id> old(slots_.empty() ? 64 : 2 * slots_.size(), kNone);
    old.swap(slots_);
    for (const Id id : old) {
        if (id == kNone) continue;
        std::size_t at = slot_of(entries_[id].key);
        while (slots_[at] != kNone) at = (at + 1) & (slots_.size() - 1);
        slots_[at] = id;
    }
}

/// What stands behind a slot that falls free moves up, unless it stands where it belongs.
void MergeTable::remove(Id id) {
    forget_made(id);
    unlink(used_, id, &Entry::used);
    drop_requesters(entries_[id]);
    const std::size_t mask = slots_.size() - 1;
    std::size_t hole = slot_of(entries_[id].key);
    while (slots_[hole] != id) hole = (hole + 1) & mask;
    for (std::size_t at = (hole + 1) & mask; slots_[at] != kNone; at = (at + 1) & mask) {
        const std::size_t home = slot_of(entries_[slots_[at]].key);
        if (((at - home) & mask) < ((at - hole) & mask)) continue;
        slots_[hole] = slots_[at];
        hole = at;
    }
    slots_[hole] = kNone;
    --filled_;
    entries_[id].state = State::free;
    entries_.give_back(id);
}

void MergeTable::use(Id id) {
    if (used_.before == id) return;
    unlink(used_, id, &Entry::used);
    append(used_, id, &Entry::used);
}

void MergeTable::append(Links& ends, Id id, Links Entry::*list) {
    (entries_[id].*list) = {ends.before, kNone};
    if (ends.before == kNone)
        ends.behind = id;
    else
        (entries_[ends.before].*list).behind = id;
    ends.before = id;
}

void MergeTable::unlink(Links& ends, Id id, Links Entry::*list) {
    if (!linked(ends, id, list)) return;
    Links& own = entries_[id].*list;
    (own.before == kNone ? ends.behind : (entries_[own.before].*list).behind) = own.behind;
    (own.behind == kNone ? ends.before : (entries_[own.behind].*list).before) = own.before;
    own = {};
}

void MergeTable::add_requester(Entry& entry, const Requester& requester) {
    Id id = free_requester_;
    if (id == kNone) {
        id = static_cast<Id>(requesters_.size());
        requesters_.emplace_back();
    } else {
        free_requester_ = requesters_[id].next;
    }
    requesters_[id] = requester;
    requesters_[id].next = kNone;
    (entry.requester == kNone ? entry.requester : requesters_[entry.last_requester].next) = id;
    entry.last_requester = id;
}

void MergeTable::drop_requesters(Entry& entry) {
    if (entry.requester == kNone) return;
    requesters_[entry.last_requester].next = free_requester_;
    free_requester_ = entry.requester;
    entry.requester = entry.last_requester = kNone;
}

}  // namespace moehub::sim
