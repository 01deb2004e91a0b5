#include "sim/hub/egress.hpp"

#include "sim/fabric.hpp"

#include <algorithm>
#include <utility>

namespace moehub::sim {

Egress::Egress(Fabric& fabric, GpuId gpu)
    : uplinks_(fabric, gpu), requests_(PerPeerQueues(uplinks_)) {
    if (fabric.options().queueing == Queueing::shared_fifo) requests_ = SharedFifo(uplinks_);
    if (fabric.options().queueing == Queueing::rpm) requests_ = PacketManager(uplinks_);
}

Ps Egress::run(Fabric& fabric, std::span<const Event> events, Ps until) {
    return std::visit([&](auto& queue) { return run_with(queue, fabric, events, until); },
                      requests_);
}

/// A post may change whose turn it is, so what comes before it must have left.
template <class Queue>
Ps Egress::run_with(Queue& queue, Fabric& fabric, std::span<const Event> events, Ps until) {
    Ps ran = -1;
    for (const Event& event : events) {  // all events are posts
        if (event.time != ran || Queue::kEachByItself) queue.run(fabric, uplinks_, event.time);
        ran = event.time;
        fabric.transfer(event.train.transfer).ready = event.time;
        queue.post(fabric, uplinks_, event.train.transfer);
    }
    return queue.run(fabric, uplinks_, until);
}

const RpmStats* Egress::rpm_stats() const {
    const auto* manager = std::get_if<PacketManager>(&requests_);
    return manager == nullptr ? nullptr : &manager->stats();
}

namespace {

/// True for the links to several switches, over which a transfer's lines are spread.
bool spread(const Fabric& fabric, const Uplinks::Uplink& uplink) {
    const Topology& topology = fabric.topology();
    return topology.planes > 1 && !topology.mesh && !topology.is_nic(uplink.number);
}

constexpr std::uint32_t kLoads = 0x10000;  // beyond all GPUs

bool separate(const Fabric& fabric, const Transfer& transfer) {
    return fabric.options().separate_loads && transfer.kind == EventKind::load;
}

std::uint32_t peer_of(const Fabric& fabric, const Transfer& transfer) {
    return transfer.dst + (separate(fabric, transfer) ? kLoads : 0);
}

}  // namespace

PerPeerQueues::PerPeerQueues(const Uplinks& uplinks) {
    for (const Uplinks::Uplink& uplink : uplinks.all())
        links_.emplace_back().queues.resize(uplink.channels.size());
}

void PerPeerQueues::post(Fabric& fabric, Uplinks& uplinks, TransferId id) {
    const Transfer& transfer = fabric.transfer(id);
    const Peer peer = peer_of(fabric, transfer);
    const auto [last, first_ever] = last_.try_emplace(peer, id);
    if (!first_ever) fabric.transfer(std::exchange(last->second, id)).next = id;
    for (Uplinks::Uplink& uplink : uplinks.all()) {
        if (!fabric.topology().connects(uplink.number, transfer.src, transfer.dst)) continue;
        Link& link = links_[uplink.number];
        const auto [found, idle] = link.cursors.try_emplace(peer);
        if (!idle) continue;  // it will come to this transfer
        Cursor& cursor = found->second;
        open(fabric, uplink, cursor, id);
        if (!settle(fabric, uplink, cursor)) {
            link.cursors.erase(found);
            continue;
        }
        const std::uint32_t number = Uplinks::channel_of(uplink, transfer.dst);
        link.queues[number].peers.push_back(&cursor);
        if (uplinks.empty(uplink, number)) refill(fabric, uplinks, uplink, number);
    }
}

Ps PerPeerQueues::run(Fabric& fabric, Uplinks& uplinks, Ps until) {
    Ps next = kNever;
    for (Uplinks::Uplink& uplink : uplinks.all())
        next = std::min(next, run_uplink(fabric, uplinks, uplink, until));
    return next;
}

Ps PerPeerQueues::run_uplink(Fabric& fabric, Uplinks& uplinks, Uplinks::Uplink& uplink, Ps until) {
    for (;;) {
        const Uplinks::Choice choice = uplinks.choose(fabric, uplink, until);
        if (choice.start >= until) return choice.start;
        uplinks.depart(fabric, uplink, choice);
        if (choice.channel != 0) refill(fabric, uplinks, uplink, choice.channel);
    }
}

/// Cuts the channel's next train, from the peer whose turn it is.
void PerPeerQueues::refill(Fabric& fabric, Uplinks& uplinks, Uplinks::Uplink& uplink,
                           std::uint32_t number) {
    Link& link = links_[uplink.number];
    Queue& queue = link.queues[number];
    if (queue.peers.empty()) return;
    if (queue.turn >= queue.peers.size()) queue.turn = 0;
    Cursor& cursor = *queue.peers[queue.turn];
    const Peer peer = peer_of(fabric, fabric.transfer(cursor.transfer));
    Train& train = uplinks.stage(uplink, number, fabric.transfer(cursor.transfer).ready);
    fabric.cut(train, cursor.transfer, *uplink.wire, cursor.index);
    train.plane = static_cast<std::uint8_t>(uplink.number);
    uplink.channels[number].packets += train.packets;
    Transfer& transfer = fabric.transfer(cursor.transfer);
    if (transfer.told && ++transfer.issued == cursor.count)
        fabric.tell_taken_in(cursor.transfer, std::max(uplink.free_at, transfer.ready));
    ++cursor.group;
    if (settle(fabric, uplink, cursor)) {
        ++queue.turn;
    } else {
        queue.peers.erase(queue.peers.begin() + static_cast<std::ptrdiff_t>(queue.turn));
        link.cursors.erase(peer);
    }
}

void PerPeerQueues::open(Fabric& fabric, const Uplinks::Uplink& uplink, Cursor& cursor,
                         TransferId id) const {
    const Transfer& transfer = fabric.transfer(id);
    cursor = {};
    cursor.transfer = id;
    cursor.count = fabric.trains(transfer, *uplink.wire);
    cursor.end = cursor.count;
    if (spread(fabric, uplink)) {
        const std::uint32_t planes = fabric.topology().planes;
        cursor.line = fabric.first_line(transfer, *uplink.wire);
        cursor.group = cursor.line / planes;
        cursor.end = (cursor.line + cursor.count + planes - 1) / planes;
    }
}

/// Moves a cursor on to the next train for its uplink; false at the end of the list.
bool PerPeerQueues::settle(Fabric& fabric, const Uplinks::Uplink& uplink, Cursor& cursor) const {
    const Topology& topology = fabric.topology();
    const bool spreads = spread(fabric, uplink);
    for (;;) {
        for (; cursor.group < cursor.end; ++cursor.group) {
            const std::uint64_t line =
                spreads ? topology.line(cursor.group, uplink.number) : cursor.group;
            const std::uint64_t index = line - cursor.line;  // wraps where the line lies before
            if (index >= cursor.count) continue;
            cursor.index = static_cast<std::uint32_t>(index);
            return true;
        }
        const TransferId next = fabric.transfer(cursor.transfer).next;
        if (next == kNoTransfer) {
            cursor.transfer = kNoTransfer;
            return false;
        }
        open(fabric, uplink, cursor, next);
    }
}

void SharedFifo::post(Fabric& fabric, Uplinks&, TransferId id) {
    if (head_ == kNoTransfer)
        head_ = id;
    else
        fabric.transfer(tail_).next = id;
    tail_ = id;
}

Ps SharedFifo::run(Fabric& fabric, Uplinks& uplinks, Ps until) {
    // Credits may have come.
    for (Uplinks::Uplink& uplink : uplinks.all()) uplinks.choose_again(uplink);
    for (;;) {
        feed(fabric, uplinks);
        const Uplinks::First first = uplinks.choose_first(fabric, until);
        if (first.choice.start >= until) return first.choice.start;
        departed_ = std::max(departed_, first.choice.start);
        uplinks.depart(fabric, *first.uplink, first.choice);
    }
}

/// Finds a lane with a row, from the one whose turn it is on; false when there is none.
bool SharedFifo::next_lane(Fabric& fabric) {
    const auto lanes = static_cast<std::size_t>(std::max(1, fabric.machine().gpu.sms));
    for (std::size_t i = 0; i < lanes; ++i, lane_ = (lane_ + 1) % lanes) {
        if (lane_ >= lanes_.size()) {
            if (head_ == kNoTransfer) {
                lane_ = lanes - 1;  // the rest of the lanes was never used: on with the first
                continue;
            }
            lanes_.push_back(kNoTransfer);
        }
        if (lanes_[lane_] == kNoTransfer && head_ != kNoTransfer) {
            lanes_[lane_] = head_;
            head_ = fabric.transfer(head_).next;
        }
        if (lanes_[lane_] != kNoTransfer) return true;
    }
    return false;
}

/// Moves trains from the head of the line to their channels' staging buffers until one is full.
void SharedFifo::feed(Fabric& fabric, Uplinks& uplinks) {
    while (next_lane(fabric)) {
        const TransferId id = lanes_[lane_];
        Transfer& transfer = fabric.transfer(id);
        const Topology& topology = fabric.topology();
        const Wire& line_wire = *uplinks[0].wire;
        Uplinks::Uplink& uplink = uplinks[topology.uplink(
            transfer.src, transfer.dst, fabric.first_line(transfer, line_wire) + transfer.issued)];
        const std::uint32_t number = Uplinks::channel_of(uplink, transfer.dst);
        Uplinks::Channel& channel = uplink.channels[number];
        const std::int64_t room =
            std::int64_t{fabric.machine().hub.staging_packets} * uplink.wire->fold;
        // One packet at a time is here of a train that is leaving; where a link stands for several,
        // their staging holds more of it.
        const bool leaves = !channel.trains.empty() && uplink.wire->fold == 1 &&
                            is_write(channel.trains.front().train.kind) && is_write(transfer.kind);
        const std::int64_t leaving =
            leaves ? std::int64_t{channel.trains.front().train.packets} - 1 : 0;
        if (channel.packets - leaving >= room) return;
        Train& train = uplinks.stage(uplink, number, std::max(transfer.ready, departed_));
        fabric.cut(train, id, *uplink.wire, transfer.issued);
        train.plane = static_cast<std::uint8_t>(uplink.number);
        channel.packets += train.packets;
        if (++transfer.issued == fabric.trains(transfer, *uplink.wire)) {
            lanes_[lane_] = kNoTransfer;
            if (transfer.told) fabric.tell_taken_in(id, std::max(transfer.ready, departed_));
        }
        ++lane_;
        if (lane_ >= static_cast<std::size_t>(std::max(1, fabric.machine().gpu.sms))) lane_ = 0;
    }
}

}  // namespace moehub::sim
