#include "sim/hub/egress.hpp"

#include "sim/fabric.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace moehub::sim {

Egress::Egress(Fabric& fabric, GpuId gpu)
    : gpu_(gpu),
      queueing_(fabric.options().queueing),
      uplinks_(fabric.topology().uplinks()),
      starts_(uplinks_.size(), kNever) {
    const ComponentId self = fabric.topology().egress(gpu);
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
    Ps ran = -1;
    for (const Event& event : events) {  // all posts
        // A post may change whose turn it is, so what comes before it must have left. Of posts at
        // one instant only those to a shared FIFO do so, which takes up each as it comes.
        const bool again = event.time == ran && queueing_ != Queueing::shared_fifo;
        if (!again) run_until(fabric, event.time);
        ran = event.time;
        fabric.transfer(event.unit.transfer).ready = event.time;
        enqueue(fabric, event.unit.transfer);
    }
    return run_until(fabric, until);
}

Ps Egress::run_until(Fabric& fabric, Ps until) {
    if (queueing_ != Queueing::per_peer) {
        for (Uplink& uplink : uplinks_) choose_again(uplink);  // credits may have come
        return queueing_ == Queueing::rpm ? run_rpm(fabric, until) : run_shared(fabric, until);
    }
    Ps next = kNever;
    for (Uplink& uplink : uplinks_) next = std::min(next, run_uplink(fabric, uplink, until));
    return next;
}

void Egress::enqueue(Fabric& fabric, TransferId id) {
    const Transfer& transfer = fabric.transfer(id);
    if (queueing_ == Queueing::rpm) return enqueue_rpm(fabric, id);
    if (queueing_ == Queueing::shared_fifo) {
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
        if (!fabric.topology().connects(uplink.number, transfer.src, transfer.dst)) continue;
        const auto [found, idle] = uplink.cursors.try_emplace(transfer.dst);
        if (!idle) continue;  // it will come to this transfer
        Cursor& cursor = found->second;
        open(fabric, uplink, cursor, id);
        if (!settle(fabric, uplink, cursor)) {
            uplink.cursors.erase(found);
            continue;
        }
        const std::uint32_t number = channel_of(uplink, transfer.dst);
        uplink.channels[number].peers.push_back(&cursor);
        if (uplink.channels[number].units.empty()) refill(fabric, uplink, number);
    }
}

Unit& Egress::add_response(std::uint32_t uplink, Ps time) {
    return stage(uplinks_[uplink], 0, time);
}

Unit& Egress::stage(Uplink& uplink, std::uint32_t number, Ps time) {
    uplink.filled |= 1u << number;
    choose_again(uplink);
    return uplink.channels[number].units.push(time).unit;
}

/// The earliest start; among equals responses and requests alternate, and so do request channels.
Egress::Choice Egress::choose(Fabric& fabric, const Uplink& uplink, Ps until) const {
    Choice best;
    const auto consider = [&](std::uint32_t numbers) {
        for (; numbers != 0 && best.start > uplink.free_at; numbers &= numbers - 1) {
            const auto number = static_cast<std::uint32_t>(std::countr_zero(numbers));
            const Channel& channel = uplink.channels[number];
            const Staged& staged = channel.units.front();
            Ps start = std::max(uplink.free_at, staged.time);
            // Credits are asked for only when it is time: a shorter answer may still go first.
            if (channel.pool != kNoPool && start < until) {
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

Egress::First Egress::choose_first(Fabric& fabric, Ps until) {
    for (const std::uint32_t number : stale_) {
        Uplink& uplink = uplinks_[number];
        uplink.next = choose(fabric, uplink, until);
        uplink.chosen = true;
        starts_[number] = uplink.next.start;
    }
    stale_.clear();
    const auto first = std::min_element(starts_.begin(), starts_.end());
    Uplink& uplink = uplinks_[static_cast<std::size_t>(first - starts_.begin())];
    return {&uplink, uplink.next};
}

void Egress::depart(Fabric& fabric, Uplink& uplink, const Choice& choice) {
    choose_again(uplink);
    Channel& channel = uplink.channels[choice.channel];
    const Unit& unit = channel.units.front().unit;
    if (channel.pool != kNoPool) fabric.pool(channel.pool).take(unit.flits);
    uplink.answered_last = choice.channel == 0;
    if (choice.channel != 0) {
        uplink.turn = choice.channel == uplink.requests ? 1 : choice.channel + 1;
        channel.packets -= unit.packets;
    }
    uplink.free_at = choice.start + uplink.wire->serialise(unit.flits);
    uplink.sent += unit.flits;
    emit(fabric, uplink, unit, channel.pool, choice.start);
    channel.units.drop();
    if (channel.units.empty()) uplink.filled &= ~(1u << choice.channel);
}

void Egress::emit(Fabric& fabric, const Uplink& uplink, const Unit& unit, PoolId hold, Ps start) {
    const Topology& topology = fabric.topology();
    const Wire& wire = *uplink.wire;
    const ComponentId self = topology.egress(gpu_);
    if (fabric.options().grain == Grain::packet) {
        const Ps arrival = uplink.free_at + wire.latency;
        fabric.push(topology.after_egress(unit), unit, arrival, self).hold = hold;
        return;
    }
    const std::uint32_t first = first_packet_flits(unit);
    const Ps lane = wire.lane_extra(first) + wire.latency;
    fabric.send_train(
        topology.after_egress(unit), unit, hold,
        {start + wire.serialise(first) + lane, uplink.free_at + lane, self});
}

}  // namespace moehub::sim
