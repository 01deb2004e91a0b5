#include "sim/fabric.hpp"
#include "sim/hub/egress.hpp"
#include "sim/recorder.hpp"

#include <algorithm>
#include <bit>

namespace moehub::sim {

Uplinks::Uplinks(Fabric& fabric, GpuId gpu)
    : gpu_(gpu), uplinks_(fabric.topology().uplinks()), starts_(uplinks_.size(), kNever) {
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

Train& Uplinks::stage(Uplink& uplink, std::uint32_t number, Ps time) {
    uplink.filled |= 1u << number;
    choose_again(uplink);
    return uplink.channels[number].trains.push(time).train;
}

/// The earliest start; among equals responses and requests alternate, and so do request channels.
Uplinks::Choice Uplinks::choose(Fabric& fabric, const Uplink& uplink, Ps until) const {
    Choice best;
    const auto consider = [&](std::uint32_t numbers) {
        for (; numbers != 0 && best.start > uplink.free_at; numbers &= numbers - 1) {
            const auto number = static_cast<std::uint32_t>(std::countr_zero(numbers));
            const Channel& channel = uplink.channels[number];
            const Staged& staged = channel.trains.front();
            Ps start = std::max(uplink.free_at, staged.time);
            // Credits are asked for only when it is time: a shorter answer may still go first.
            if (channel.pool != kNoPool && start < until)
                start = fabric.pool(channel.pool).ready(first_packet_flits(staged.train), start);
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

Uplinks::First Uplinks::choose_first(Fabric& fabric, Ps until) {
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

void Uplinks::depart(Fabric& fabric, Uplink& uplink, const Choice& choice) {
    choose_again(uplink);
    Channel& channel = uplink.channels[choice.channel];
    const Train& train = channel.trains.front().train;
    if (channel.pool != kNoPool) fabric.pool(channel.pool).take(train.flits);
    uplink.answered_last = choice.channel == 0;
    if (choice.channel != 0) {
        uplink.turn = choice.channel == uplink.requests ? 1 : choice.channel + 1;
        channel.packets -= train.packets;
    }
    uplink.free_at = choice.start + uplink.wire->serialise(train.flits);
    uplink.busy.add(choice.start, uplink.free_at, train.flits);
    if (Recorder* recorder = fabric.recorder())
        record(*recorder, fabric, train, choice, uplink.free_at);
    emit(fabric, uplink, train, channel.pool, choice.start);
    channel.trains.drop();
    if (channel.trains.empty()) uplink.filled &= ~(1u << choice.channel);
}

/// The RPM, or what a hub has instead, hands on requests.
void Uplinks::record(Recorder& recorder, const Fabric& fabric, const Train& train,
                     const Choice& choice, Ps end) const {
    const bool rpm = fabric.options().queueing == Queueing::rpm;
    if (choice.channel != 0)
        recorder.count(fabric.topology().gpu(gpu_), rpm ? "rpm" : "egress", choice.start,
                       train.packets);
    recorder.rows.departed(train, gpu_, end);
}

void Uplinks::emit(Fabric& fabric, const Uplink& uplink, const Train& train, PoolId hold,
                   Ps start) {
    const Topology& topology = fabric.topology();
    const Wire& wire = *uplink.wire;
    const ComponentId self = topology.egress(gpu_);
    if (fabric.options().grain == Grain::packet) {
        const Ps arrival = uplink.free_at + wire.latency;
        fabric.push(topology.after_egress(train), train, arrival, self).hold = hold;
        return;
    }
    const std::uint32_t first = first_packet_flits(train);
    const Ps lane = wire.lane_extra(first) + wire.latency;
    fabric.send_train(topology.after_egress(train), train, hold,
                      {start + wire.serialise(first) + lane, uplink.free_at + lane, self});
}

}  // namespace moehub::sim
