#include "sim/hub/shared_fifo.hpp"

#include "sim/fabric.hpp"

#include <algorithm>

namespace moehub::sim {

void SharedFifo::post(Fabric& fabric, Uplinks&, TransferId id) {
    if (head_ == kNoTransfer) {
        head_ = id;
    } else {
        fabric.transfer(tail_).next = id;
    }
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
        // Of a train that is leaving, one packet at a time is here; where a link stands for
        // several, their staging holds more of it.
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
