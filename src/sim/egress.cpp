#include "sim/egress.hpp"

#include "sim/fabric.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace moehub::sim {

Egress::Egress(Fabric& fabric, GpuId gpu)
    : gpu_(gpu), shared_fifo_(fabric.options().shared_fifo), uplinks_(fabric.layout().uplinks()) {
    const ComponentId self = fabric.layout().egress(gpu);
    for (std::uint32_t i = 0; i < uplinks_.size(); ++i) {
        Uplink& uplink = uplinks_[i];
        uplink.wire = &fabric.wire_of_uplink(i);
        uplink.number = i;
        uplink.requests = fabric.request_channels(i);
        uplink.turn = channel_of(uplink, static_cast<GpuId>(gpu + 1));  // not all with the same GPU
        uplink.channels.resize(uplink.requests + 1);
        if (!fabric.uplink_has_credits(i)) continue;
        for (Channel& channel : uplink.channels) channel.pool = fabric.add_pool(self, *uplink.wire);
    }
}

std::int64_t Egress::link_flits() const {
    std::int64_t sum = 0;
    for (const Uplink& uplink : uplinks_) sum += uplink.sent;
    return sum - nic_flits();
}

std::int64_t Egress::nic_flits() const {
    const Uplink& last = uplinks_.back();
    return last.wire != uplinks_.front().wire ? last.sent : 0;
}

Ps Egress::run(Fabric& fabric, std::span<const Event> events, Ps until) {
    for (const Event& event : events) {
        // A post may change whose turn it is, so what comes before it must have left.
        if (event.unit.kind == Kind::post) run_until(fabric, event.time);
        accept(fabric, event);
    }
    return run_until(fabric, until);
}

Ps Egress::run_until(Fabric& fabric, Ps until) {
    if (shared_fifo_) return run_shared(fabric, until);
    Ps next = kNever;
    for (Uplink& uplink : uplinks_) next = std::min(next, run_uplink(fabric, uplink, until));
    return next;
}

void Egress::accept(Fabric& fabric, const Event& event) {
    if (event.unit.kind == Kind::post) {
        fabric.transfer(event.unit.transfer).ready = event.time;
        enqueue(fabric, event.unit.transfer);
    } else {
        stage(uplinks_[event.unit.plane], 0, {event.time, event.unit});
    }
}

void Egress::enqueue(Fabric& fabric, TransferId id) {
    const Transfer& transfer = fabric.transfer(id);
    if (shared_fifo_) {
        if (fifo_head_ == kNoTransfer) {
            fifo_head_ = id;
        } else {
            fabric.transfer(fifo_tail_).next = id;
        }
        fifo_tail_ = id;
        return;
    }
    const auto [last, first_ever] = last_.try_emplace(transfer.dst, id);
    if (!first_ever) fabric.transfer(std::exchange(last->second, id)).next = id;
    for (Uplink& uplink : uplinks_) {
        if (!fabric.layout().connects(uplink.number, transfer.src, transfer.dst)) continue;
        const auto [place, idle] = uplink.cursors.try_emplace(transfer.dst);
        if (!idle) continue;  // it will come to this transfer
        Cursor& cursor = place->second;
        open(fabric, uplink, cursor, id);
        if (!settle(fabric, uplink, cursor)) {
            uplink.cursors.erase(place);
            continue;
        }
        const std::uint32_t number = channel_of(uplink, transfer.dst);
        uplink.channels[number].peers.push_back(&cursor);
        if (uplink.channels[number].units.empty()) refill(fabric, uplink, number);
    }
}

void Egress::stage(Uplink& uplink, std::uint32_t number, const Staged& staged) {
    Channel& channel = uplink.channels[number];
    channel.units.push(staged);
    channel.flits += staged.unit.flits;
    uplink.filled |= 1u << number;
}

/// The earliest start; among equals responses and requests alternate, and so do request channels.
Egress::Choice Egress::choose(Fabric& fabric, const Uplink& uplink) const {
    Choice best;
    const auto consider = [&](std::uint32_t numbers) {
        for (; numbers != 0 && best.start > uplink.free_at; numbers &= numbers - 1) {
            const auto number = static_cast<std::uint32_t>(std::countr_zero(numbers));
            const Channel& channel = uplink.channels[number];
            const Staged& staged = channel.units.front();
            Ps start = std::max(uplink.free_at, staged.time);
            if (channel.pool != kNoPool) {
                start = fabric.pool(channel.pool).ready(first_packet_flits(staged.unit), start);
            }
            if (start < best.start) best = {start, number};
        }
    };
    const std::uint32_t before_turn = (1u << uplink.turn) - 1;
    if (!uplink.answered_last) consider(uplink.filled & 1u);
    consider(uplink.filled & ~before_turn & ~1u);
    consider(uplink.filled & before_turn & ~1u);
    if (uplink.answered_last) consider(uplink.filled & 1u);
    return best;
}

void Egress::depart(Fabric& fabric, Uplink& uplink, const Choice& choice) {
    Channel& channel = uplink.channels[choice.channel];
    Unit unit = channel.units.pop().unit;
    channel.flits -= unit.flits;
    if (channel.units.empty()) uplink.filled &= ~(1u << choice.channel);
    if (channel.pool != kNoPool) fabric.pool(channel.pool).take(unit.flits);
    uplink.answered_last = choice.channel == 0;
    if (choice.channel != 0) {
        uplink.turn = choice.channel == uplink.requests ? 1 : choice.channel + 1;
    }
    uplink.free_at = choice.start + uplink.wire->serialise(unit.flits);
    uplink.sent += unit.flits;
    unit.hold = channel.pool;
    emit(fabric, uplink, unit, choice.start);
}

void Egress::emit(Fabric& fabric, const Uplink& uplink, Unit unit, Ps start) {
    const ComponentId self = fabric.layout().egress(gpu_);
    if (fabric.options().grain == Grain::packet && !unit.multicast) {
        fabric.push(fabric.layout().after_egress(unit), unit, uplink.free_at + uplink.wire->latency,
                    self);
        return;
    }
    const std::uint32_t first = first_packet_flits(unit);
    const Ps lane = uplink.wire->lane_extra(first) + uplink.wire->latency;
    const Flight flight{start + uplink.wire->serialise(first) + lane, uplink.free_at + lane, self};
    if (!unit.multicast) {
        fabric.send(fabric.layout().after_egress(unit), unit, flight);
        return;
    }
    unit.hold = fabric.share_hold(unit.hold, fabric.layout().gpus_per_node);
    const std::uint32_t base = fabric.layout().node(gpu_) * fabric.layout().gpus_per_node;
    for (std::uint32_t i = 0; i < fabric.layout().gpus_per_node; ++i) {
        unit.dst = static_cast<GpuId>(base + i);
        fabric.send(fabric.layout().after_egress(unit), unit, flight);
    }
}

// Per peer.

Ps Egress::run_uplink(Fabric& fabric, Uplink& uplink, Ps until) {
    for (;;) {
        const Choice choice = choose(fabric, uplink);
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
    stage(uplink, number,
          {fabric.transfer(cursor.transfer).ready,
           fabric.cut(cursor.transfer, *uplink.wire, uplink.number, cursor.index)});
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
    const Layout& layout = fabric.layout();
    return layout.planes > 1 && !layout.mesh && !layout.is_nic(uplink.number);
}

void Egress::open(Fabric& fabric, const Uplink& uplink, Cursor& cursor, TransferId id) const {
    const Transfer& transfer = fabric.transfer(id);
    cursor = {};
    cursor.transfer = id;
    cursor.count = fabric.units(transfer, *uplink.wire);
    cursor.end = cursor.count;
    if (spread(fabric, uplink)) {
        const std::uint32_t planes = fabric.layout().planes;
        cursor.line = fabric.first_line(transfer, *uplink.wire);
        cursor.group = cursor.line / planes;
        cursor.end = (cursor.line + cursor.count + planes - 1) / planes;
    }
}

/// Moves a cursor on to the next unit for its uplink; false at the end of the list.
bool Egress::settle(Fabric& fabric, const Uplink& uplink, Cursor& cursor) const {
    const Layout& layout = fabric.layout();
    const bool spreads = spread(fabric, uplink);
    for (;;) {
        for (; cursor.group < cursor.end; ++cursor.group) {
            const std::uint64_t line =
                spreads ? layout.line(cursor.group, uplink.number) : cursor.group;
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
        Choice best;
        Uplink* chosen = nullptr;
        for (Uplink& uplink : uplinks_) {
            const Choice choice = choose(fabric, uplink);
            if (choice.start >= best.start) continue;
            best = choice;
            chosen = &uplink;
        }
        if (best.start >= until) return best.start;
        fifo_time_ = std::max(fifo_time_, best.start);
        depart(fabric, *chosen, best);
    }
}

/// Moves units from the head of the line to their channels' staging buffers until one is full.
void Egress::feed_from_fifo(Fabric& fabric) {
    while (fifo_head_ != kNoTransfer) {
        Transfer& transfer = fabric.transfer(fifo_head_);
        const Layout& layout = fabric.layout();
        const Wire& line_wire = *uplinks_.front().wire;
        Uplink& uplink = uplinks_[layout.uplink(
            transfer.src, transfer.dst, fabric.first_line(transfer, line_wire) + transfer.issued)];
        const std::uint32_t number = channel_of(uplink, transfer.dst);
        const std::int64_t room = std::int64_t{fabric.machine().hub.staging_packets} *
                                  uplink.wire->full_packet_flits * uplink.wire->fold;
        if (uplink.channels[number].flits >= room) return;
        stage(uplink, number,
              {std::max(transfer.ready, fifo_time_),
               fabric.cut(fifo_head_, *uplink.wire, uplink.number, transfer.issued)});
        if (++transfer.issued == fabric.units(transfer, *uplink.wire)) fifo_head_ = transfer.next;
    }
}

}  // namespace moehub::sim
