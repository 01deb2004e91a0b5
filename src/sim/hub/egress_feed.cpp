// How requests reach an egress's channels: one queue per peer, or one shared FIFO.
#include "sim/hub/egress.hpp"
#include "sim/fabric.hpp"

#include <algorithm>

namespace moehub::sim {

// Per peer.

Ps Egress::run_uplink(Fabric& fabric, Uplink& uplink, Ps until) {
    for (;;) {
        const Choice choice = choose(fabric, uplink, until);
        if (choice.start >= until) return choice.start;
        depart(fabric, uplink, choice);
        if (choice.channel != 0) refill(fabric, uplink, choice.channel);
    }
}

/// Cuts the channel's next unit, from the peer whose turn it is.
void Egress::refill(Fabric& fabric, Uplink& uplink, std::uint32_t number) {
    Channel& channel = uplink.channels[number];
    if (channel.peers.empty()) return;
    if (channel.turn >= channel.peers.size()) channel.turn = 0;
    Cursor& cursor = *channel.peers[channel.turn];
    const GpuId peer = fabric.transfer(cursor.transfer).dst;
    Unit& unit = stage(uplink, number, fabric.transfer(cursor.transfer).ready);
    fabric.cut(unit, cursor.transfer, *uplink.wire, cursor.index);
    unit.plane = static_cast<std::uint8_t>(uplink.number);
    channel.packets += unit.packets;
    ++cursor.group;
    if (settle(fabric, uplink, cursor)) {
        ++channel.turn;
    } else {
        channel.peers.erase(channel.peers.begin() + static_cast<std::ptrdiff_t>(channel.turn));
        uplink.cursors.erase(peer);
    }
}

/// True for the links to several switches, over which a transfer's lines are spread.
bool Egress::spread(const Fabric& fabric, const Uplink& uplink) const {
    const Topology& topology = fabric.topology();
    return topology.planes > 1 && !topology.mesh && !topology.is_nic(uplink.number);
}

void Egress::open(Fabric& fabric, const Uplink& uplink, Cursor& cursor, TransferId id) const {
    const Transfer& transfer = fabric.transfer(id);
    cursor = {};
    cursor.transfer = id;
    cursor.count = fabric.units(transfer, *uplink.wire);
    cursor.end = cursor.count;
    if (spread(fabric, uplink)) {
        const std::uint32_t planes = fabric.topology().planes;
        cursor.line = fabric.first_line(transfer, *uplink.wire);
        cursor.group = cursor.line / planes;
        cursor.end = (cursor.line + cursor.count + planes - 1) / planes;
    }
}

/// Moves a cursor on to the next unit for its uplink; false at the end of the list.
bool Egress::settle(Fabric& fabric, const Uplink& uplink, Cursor& cursor) const {
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

// Shared FIFO.

Ps Egress::run_shared(Fabric& fabric, Ps until) {
    for (;;) {
        feed_from_fifo(fabric);
        const First first = choose_first(fabric, until);
        if (first.choice.start >= until) return first.choice.start;
        fifo_time_ = std::max(fifo_time_, first.choice.start);
        depart(fabric, *first.uplink, first.choice);
    }
}

/// Finds a lane with a row, from the one whose turn it is on; false when there is none.
bool Egress::next_lane(Fabric& fabric) {
    const auto lanes = static_cast<std::size_t>(std::max(1, fabric.machine().gpu.sms));
    for (std::size_t i = 0; i < lanes; ++i, lane_ = (lane_ + 1) % lanes) {
        if (lane_ >= lanes_.size()) {
            if (fifo_head_ == kNoTransfer) {
                lane_ = lanes - 1;  // the rest of the lanes was never used: on with the first
                continue;
            }
            lanes_.push_back(kNoTransfer);
        }
        if (lanes_[lane_] == kNoTransfer && fifo_head_ != kNoTransfer) {
            lanes_[lane_] = fifo_head_;
            fifo_head_ = fabric.transfer(fifo_head_).next;
        }
        if (lanes_[lane_] != kNoTransfer) return true;
    }
    return false;
}

/// Moves units from the head of the line to their channels' staging buffers until one is full.
void Egress::feed_from_fifo(Fabric& fabric) {
    while (next_lane(fabric)) {
        const TransferId id = lanes_[lane_];
        Transfer& transfer = fabric.transfer(id);
        const Topology& topology = fabric.topology();
        const Wire& line_wire = *uplinks_.front().wire;
        Uplink& uplink = uplinks_[topology.uplink(
            transfer.src, transfer.dst, fabric.first_line(transfer, line_wire) + transfer.issued)];
        const std::uint32_t number = channel_of(uplink, transfer.dst);
        Channel& channel = uplink.channels[number];
        const std::int64_t room =
            std::int64_t{fabric.machine().hub.staging_packets} * uplink.wire->fold;
        if (channel.packets >= room) return;
        Unit& unit = stage(uplink, number, std::max(transfer.ready, fifo_time_));
        fabric.cut(unit, id, *uplink.wire, transfer.issued);
        unit.plane = static_cast<std::uint8_t>(uplink.number);
        channel.packets += unit.packets;
        if (++transfer.issued == fabric.units(transfer, *uplink.wire)) {
            lanes_[lane_] = kNoTransfer;
        }
        ++lane_;
        if (lane_ >= static_cast<std::size_t>(std::max(1, fabric.machine().gpu.sms))) lane_ = 0;
    }
}

}  // namespace moehub::sim
