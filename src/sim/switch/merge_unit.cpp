#include "sim/switch/merge_unit.hpp"

#include "sim/fabric.hpp"

#include <algorithm>
#include <stdexcept>

namespace moehub::sim {

void MergeStats::add(const MergeStats& other) {
    requests += other.requests;
    merged += other.merged;
    sent_home += other.sent_home;
    evicted += other.evicted;
    timed_out += other.timed_out;
    bypassed += other.bypassed;
    deepest = std::max(deepest, other.deepest);
    entries += other.entries;
    waited += other.waited;
    longest_wait = std::max(longest_wait, other.longest_wait);
}

/// A train gives its credits back from its head on: what it fills here is not the port's buffer.
std::span<const Event> MergeUnit::take(Fabric& fabric, const Event& event) {
    out_.clear();
    const Train& train = event.train;
    if (train.phase != Phase::tail) fabric.release(train.hold, event.time, train.flits);
    if (train.phase == Phase::head) return out_;
    if (train.kind == EventKind::data) {
        answer(fabric, event);
    } else if (!is_response(train.kind)) {
        stats_.requests += train.packets;
        if (fabric.transfer(train.transfer).target.merge == 1) {  // nobody else will come
            pass(event, false);
            return out_;
        }
        if (train.packets > 1) trains_ = true;
        if (trains_) make_room(fabric, event.time, 0);  // what is here has grown since
        train.kind == EventKind::load ? load(fabric, event) : reduce(fabric, event);
    }
    return out_;
}

MergeTable::Key MergeUnit::key_of(const Fabric& fabric, const Train& train, bool reduction) const {
    const Bytes offset = train.index * fabric.train_bytes(*wire_);
    return {fabric.transfer(train.transfer).address + static_cast<std::uint64_t>(offset),
            reduction};
}

void MergeUnit::load(Fabric& fabric, const Event& event) {
    const MergeTable::Key key = key_of(fabric, event.train, false);
    const Id found = table_.find(key);
    const bool expired = found != MergeTable::kNone && table_[found].expired;
    if (expired || (found == MergeTable::kNone && !make_room(fabric, event.time, 1))) {
        stats_.bypassed += event.train.packets;
        return pass(event, false);
    }
    if (found == MergeTable::kNone) {
        Entry& entry = table_[add_entry(key, event, State::load_wait)];
        entry.wanted = fabric.transfer(event.train.transfer).target.merge;
        remember(entry, event.train);
        return pass(event, true);
    }
    Entry& entry = table_[found];
    join(entry, event);
    if (entry.state == State::load_wait) return remember(entry, event.train);
    table_.use(found);
    give_data(fabric, entry, {event.train.transfer, event.train.index, event.train.src},
              event.time);
    if (entry.count >= entry.wanted) remove(fabric, found);
}

/// Data from home: for all who wait, and for those who will still ask.
void MergeUnit::answer(Fabric& fabric, const Event& event) {
    const Id id = table_.find(key_of(fabric, event.train, false));
    if (id == MergeTable::kNone || table_[id].state != State::load_wait)
        throw std::logic_error("data came that no load waits for");
    Entry& entry = table_[id];
    entry.train = event.train;
    entry.train.phase = Phase::whole;
    entry.train.hold = kNoPool;
    entry.train.merge = false;
    entry.state = State::load_ready;
    for (Id to = entry.requester; to != MergeTable::kNone; to = table_.requester(to).next)
        give_data(fabric, entry, table_.requester(to), event.time);
    table_.drop_requesters(entry);
    if (entry.expired || entry.count >= entry.wanted) return remove(fabric, id);
    table_.use(id);
}

void MergeUnit::give_data(Fabric& fabric, Entry& entry, const MergeTable::Requester& to, Ps now) {
    Train& data = out_.emplace_back(Event{entry.train, now, 0}).train;
    data.transfer = to.transfer;
    data.index = to.index;
    data.dst = to.gpu;
    if (data.sum != kNoSum) data.sum = fabric.sums().copy(data.sum);
}

void MergeUnit::reduce(Fabric& fabric, const Event& event) {
    const MergeTable::Key key = key_of(fabric, event.train, true);
    Id id = table_.find(key);
    if (id == MergeTable::kNone) {
        if (!make_room(fabric, event.time, 1)) {
            stats_.bypassed += event.train.packets;
            return pass(event, false);
        }
        id = add_entry(key, event, State::reduction);
        table_[id].wanted = fabric.transfer(event.train.transfer).target.merge;
    } else {
        Entry& entry = table_[id];
        join(entry, event);
        add_up(fabric, entry, event.train);
    }
    acknowledge(event);
    if (table_[id].count >= table_[id].wanted) return send_home(fabric, id, event.time);
    table_.use(id);
}

/// A fault of what joins others strikes here; that of who came first strikes their sum, at home.
void MergeUnit::add_up(Fabric& fabric, Entry& entry, const Train& train) {
    if (train.sum == kNoSum) return;
    const bool faulty = fabric.transfer(train.transfer).faulty;
    const Fault::What what = faulty ? fabric.options().fault.what : Fault::What::none;
    if (what == Fault::What::drop || what == Fault::What::delay) {
        fabric.sums().forget(train.sum);
        return;
    }
    if (what == Fault::What::duplicate)
        fabric.sums().merge(entry.train.sum, fabric.sums().copy(train.sum));
    fabric.sums().merge(entry.train.sum, train.sum);
}

MergeTable::Id MergeUnit::add_entry(const MergeTable::Key& key, const Event& event, State state) {
    const Id id = table_.add(key);
    Entry& entry = table_[id];
    entry.state = state;
    entry.count = 1;
    entry.train = event.train;
    entry.first = entry.last = event.time;
    packets_ += event.train.packets;
    stats_.entries += event.train.packets;
    if (!trains_) stats_.deepest = std::max(stats_.deepest, packets_);
    return id;
}

/// Joins a request to the entry that its line has.
void MergeUnit::join(Entry& entry, const Event& event) {
    if (entry.train.bytes != event.train.bytes)
        throw std::logic_error("requests for different bytes were merged");
    ++entry.count;
    entry.last = event.time;
    stats_.merged += event.train.packets;
}

void MergeUnit::remember(Entry& entry, const Train& train) {
    table_.add_requester(entry, {train.transfer, train.index, train.src});
}

/// A request goes on to the home; with `merge` its answer comes back here.
void MergeUnit::pass(const Event& event, bool merge) {
    Train& train = out_.emplace_back(event).train;
    train.phase = Phase::whole;
    train.hold = kNoPool;
    train.merge = merge;
    stats_.sent_home += train.packets;
}

/// Sends a sum, complete or not, home.
void MergeUnit::send_home(Fabric& fabric, Id id, Ps now) {
    Entry& entry = table_[id];
    entry.train.answers = entry.count;
    pass({entry.train, now, 0}, true);
    entry.train.sum = kNoSum;
    remove(fabric, id);
}

/// Who sent it need not wait for the others: the switch has it.
void MergeUnit::acknowledge(const Event& event) {
    Train& ack = out_.emplace_back(event).train;
    std::swap(ack.src, ack.dst);
    ack.kind = EventKind::ack;
    ack.phase = Phase::whole;
    ack.hold = kNoPool;
    ack.merge = false;
    ack.sum = kNoSum;
    ack.answers = 1;
    ack.flits = wire_->flits(EventKind::ack, ack.bytes, ack.packets, 0);
}

void MergeUnit::remove(Fabric& fabric, Id id) {
    const Entry& entry = table_[id];
    const Ps wait = entry.last - entry.first;
    stats_.waited += static_cast<double>(wait) * entry.train.packets;
    stats_.longest_wait = std::max(stats_.longest_wait, wait);
    packets_ -= entry.train.packets;
    if (entry.train.sum != kNoSum) fabric.sums().forget(entry.train.sum);
    table_.remove(id);
}

std::span<const Event> MergeUnit::expire(Fabric& fabric) {
    out_.clear();
    const Id id = table_.first_made();
    Entry& entry = table_[id];
    stats_.timed_out += entry.train.packets;
    switch (entry.state) {
        case State::load_wait:
            entry.expired = true;
            table_.forget_made(id);
            break;
        case State::load_ready:
            remove(fabric, id);
            break;
        case State::reduction:
            send_home(fabric, id, next_expiry());
            break;
        case State::free:
            throw std::logic_error("an entry timed out that is none");
    }
    return out_;
}

std::int64_t MergeUnit::charge(const Entry& entry, Ps now) const {
    if (entry.train.packets == 1) return 1;
    const Ps packet = wire_->serialise(first_packet_flits(entry.train));
    return std::min<std::int64_t>(entry.train.packets,
                                  1 + (now - entry.first) / std::max<Ps>(1, packet));
}

std::int64_t MergeUnit::charged(Ps now) const {
    if (!trains_) return packets_;
    std::int64_t sum = 0;
    for (const Entry& entry : table_.all())
        if (entry.state != State::free) sum += charge(entry, now);
    return sum;
}

/// Gives up entries until `need` packets more fit; false if they do not, for loads that wait.
bool MergeUnit::make_room(Fabric& fabric, Ps now, std::int64_t need) {
    if (!trains_ && packets_ + need <= spec_.room) return true;
    std::int64_t full = charged(now) + need;
    stats_.deepest = std::max(stats_.deepest, std::min(full, spec_.room));
    while (full > spec_.room) {
        const Id id = table_.least_used();
        if (id == MergeTable::kNone) return false;
        const Entry& entry = table_[id];
        full -= charge(entry, now);
        stats_.evicted += entry.train.packets;
        if (entry.state == State::reduction)
            send_home(fabric, id, now);
        else
            remove(fabric, id);
    }
    return true;
}

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
                    [&](const Train& other) { return other.src == train.src; }))
        throw std::logic_error("a GPU meets others where it still waits for them");
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
    ack.kind = EventKind::ack;
    ack.phase = Phase::whole;
    ack.hold = kNoPool;
    ack.merge = false;
    ack.flits = wire_->flits(EventKind::ack, ack.bytes, ack.packets, 0);
    ack.dst = ack.src;
}

}  // namespace moehub::sim
