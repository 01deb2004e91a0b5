#include "sim/switch/switch.hpp"

#include "sim/fabric.hpp"
#include "sim/recorder.hpp"

#include <algorithm>

namespace moehub::sim {

Switch::Switch(Fabric& fabric, SwitchId number)
    : number_(number), of_node_(fabric.topology().tier(number) == Topology::Tier::node) {
    const Topology& topology = fabric.topology();
    if (of_node_) first_gpu_ = number / topology.planes * topology.gpus_per_node;
    packets_ = fabric.options().grain == Grain::packet || !of_node_;
    const std::uint32_t ports = topology.ports(number);
    ports_.reserve(ports);
    for (std::uint32_t i = 0; i < ports; ++i) {
        const bool slow = packets_ && fabric.options().slow_ingress;
        ports_.emplace_back(fabric,
                            Port::Spec{.wire = &fabric.wire_of_port(number, i),
                                       .self = topology.of_switch(number),
                                       .behind = topology.behind_port(number, i),
                                       .packets = packets_,
                                       .credits = !topology.leads_to_gpu(number, i) || slow});
    }
    if (topology.adaptive && topology.tier(number) == Topology::Tier::leaf)
        booked_.resize(topology.spines);
    waiting_.resize(ports);
    merging_.resize(ports);
}

Ps Switch::run(Fabric& fabric, std::span<const Event> events, Ps until) {
    for (const Event& event : events) {
        if (next_expiry_ <= event.time) expire(fabric, event.time + 1);
        enter(fabric, event);
    }
    if (next_expiry_ < until) expire(fabric, until);
    if (!packets_) return next_wake(kNever, until);
    Ps next = kNever;
    for (std::size_t i = 0; i < ports_.size(); ++i) {
        if (!waiting_[i]) continue;
        Port& port = ports_[i];
        const Ps start = port.due(until) ? port.run(fabric, until) : port.next();
        next = std::min(next, start);
        if (start == kNever && port.idle()) waiting_[i] = false;
    }
    return next_wake(next, until);
}

/// When to run next, for the ports or what times out. One wake for the latter is enough at a time:
/// what is asked for by then comes after it.
Ps Switch::next_wake(Ps ports, Ps until) {
    const bool asked = woken_ >= until && woken_ <= next_expiry_;
    if (asked || next_expiry_ >= ports) return ports;
    return woken_ = next_expiry_;
}

/// Offers an event to the units: merged requests, meetings of GPUs, parts of sums between nodes.
void Switch::record(Recorder& recorder, const Fabric& fabric, const Event& event) const {
    const Train& train = event.train;
    if (train.phase == Phase::head) return;
    const ComponentId self = fabric.topology().of_switch(number_);
    recorder.rows.entered(train, self, event.time);
    const bool merged = train.merge && of_node_ && !train.multicast;
    if (merged && train.kind == EventKind::meet)
        recorder.count(self, "group sync", event.time, train.packets);
    else if (merged && !is_response(train.kind))
        recorder.count(self, "merge", event.time, train.packets);
    else if (!train.multicast && added_here(fabric, train))
        recorder.count(self, "sums", event.time, train.packets);
}

void Switch::enter(Fabric& fabric, const Event& event) {
    if (Recorder* recorder = fabric.recorder()) record(*recorder, fabric, event);
    if (event.train.multicast) return replicate(fabric, event);
    if (event.train.merge && of_node_)
        return event.train.kind == EventKind::meet ? meet(fabric, event) : merge(fabric, event);
    if (added_here(fabric, event.train)) return add_up(fabric, event);
    const std::uint32_t port = lookup(fabric, event.train);
    const bool up = !booked_.empty() && port >= fabric.topology().leaf_nodes;
    hand_over(fabric, up ? least_booked(fabric, port, event) : port, event);
}

/// The uplink that would be free first if all it was given left at its rate; of equals the one that
/// hashing would take, or the next.
std::uint32_t Switch::least_booked(const Fabric& fabric, std::uint32_t hashed, const Event& event) {
    const std::uint32_t first = fabric.topology().leaf_nodes;
    const auto spines = static_cast<std::uint32_t>(booked_.size());
    std::uint32_t best = hashed - first;
    for (std::uint32_t i = 1; i < spines; ++i) {
        const std::uint32_t other = (hashed - first + i) % spines;
        if (std::max(booked_[other], event.time) < std::max(booked_[best], event.time))
            best = other;
    }
    booked_[best] = std::max(booked_[best], event.time) +
                    fabric.wire_of_port(number_, first + best).serialise(event.train.flits);
    return first + best;
}

std::uint32_t Switch::lookup(const Fabric& fabric, const Train& train) const {
    return of_node_ ? train.dst - first_gpu_ : fabric.topology().port_towards(number_, train);
}

/// The copies hold the credits together, from the head on. Each has its own GPU's part of a list.
void Switch::replicate(Fabric& fabric, const Event& event) {
    const GroupId group = fabric.transfer(event.train.transfer).group;
    const auto members = fabric.groups().members(group);
    const bool list = fabric.groups().is_list(group);
    Event copy = event;
    Train& train = copy.train;
    train.hold = train.phase == Phase::tail
                     ? kNoPool
                     : fabric.share_hold(train, static_cast<std::uint32_t>(members.size()));
    for (std::size_t i = 0; i < members.size(); ++i) {
        train.dst = members[i];
        if (list) {
            const std::uint32_t more = fabric.list_flits(fabric.groups().regions(group, i).size());
            train.flits = fabric.link().flits(train.kind, train.bytes, train.packets, more);
        }
        hand_over(fabric, members[i] - first_gpu_, copy);
    }
}

void Switch::merge(Fabric& fabric, const Event& event) {
    const Train& train = event.train;
    const std::uint32_t home = (is_response(train.kind) ? train.src : train.dst) - first_gpu_;
    std::unique_ptr<MergeUnit>& unit = merging_[home];
    if (!unit) {
        const MergeUnit::Spec spec{fabric.merge_packets(), fabric.machine().cais.merge_timeout};
        unit = std::make_unique<MergeUnit>(spec, fabric.link());
    }
    send_on(fabric, unit->take(fabric, event));
    next_expiry_ = std::min(next_expiry_, unit->next_expiry());
}

void Switch::meet(Fabric& fabric, const Event& event) {
    if (!group_sync_) group_sync_ = std::make_unique<GroupSync>(fabric.link());
    send_on(fabric, group_sync_->take(fabric, event));
}

/// Parts on their way up, and sums at a leaf on their way down.
bool Switch::added_here(const Fabric& fabric, const Train& train) const {
    if (of_node_ || (train.kind != EventKind::atomic && train.kind != EventKind::data))
        return false;
    return fabric.transfer(train.transfer).added_in_network();
}

void Switch::add_up(Fabric& fabric, const Event& event) {
    if (!network_sums_) network_sums_ = std::make_unique<NetworkSums>(number_);
    for (const Event& made : network_sums_->take(fabric, event))
        hand_over(fabric, network_sums_->port(fabric, made.train), made);
}

/// What a unit made. An acknowledgement that costs nothing on the wire goes straight to its GPU.
void Switch::send_on(Fabric& fabric, std::span<const Event> made) {
    for (const Event& event : made) {
        const std::uint32_t port = lookup(fabric, event.train);
        if (event.train.flits > 0) {
            hand_over(fabric, port, event);
            continue;
        }
        const Topology& topology = fabric.topology();
        fabric.push(topology.behind_port(number_, port), event.train,
                    event.time + fabric.link().latency, topology.of_switch(number_));
    }
}

/// Handles what times out before `before`, in the order of time over all units.
void Switch::expire(Fabric& fabric, Ps before) {
    for (;;) {
        MergeUnit* first = nullptr;
        next_expiry_ = kNever;
        for (const std::unique_ptr<MergeUnit>& unit : merging_) {
            if (!unit || unit->next_expiry() >= next_expiry_) continue;
            first = unit.get();
            next_expiry_ = unit->next_expiry();
        }
        if (next_expiry_ >= before) return;
        send_on(fabric, first->expire(fabric));
    }
}

void Switch::hand_over(Fabric& fabric, std::uint32_t port, const Event& event) {
    ports_[port].take(fabric, event);
    waiting_[port] = true;
}

}  // namespace moehub::sim
