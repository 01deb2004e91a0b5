#include "sim/switch/switch.hpp"

#include "sim/fabric.hpp"

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
        Port::Spec spec;
        spec.wire = &fabric.wire_of_port(number, i);
        spec.self = topology.of_switch(number);
        spec.behind = topology.behind_port(number, i);
        spec.packets = packets_;
        spec.credits =
            !topology.leads_to_gpu(number, i) || (packets_ && fabric.options().slow_ingress);
        ports_.emplace_back(fabric, spec);
    }
    waiting_.resize(ports);
}

Ps Switch::run(Fabric& fabric, std::span<const Event> events, Ps until) {
    for (const Event& event : events) enter(fabric, event);
    if (!packets_) return kNever;
    Ps next = kNever;
    for (std::size_t i = 0; i < ports_.size(); ++i) {
        if (!waiting_[i]) continue;
        Port& port = ports_[i];
        const Ps start = port.due(until) ? port.run(fabric, until) : port.next();
        next = std::min(next, start);
        if (start == kNever && port.idle()) waiting_[i] = false;
    }
    return next;
}

void Switch::enter(Fabric& fabric, const Event& event) {
    if (event.train.multicast) return replicate(fabric, event);
    hand_over(fabric, lookup(fabric, event.train), event);
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

void Switch::hand_over(Fabric& fabric, std::uint32_t port, const Event& event) {
    ports_[port].take(fabric, event);
    waiting_[port] = true;
}

}  // namespace moehub::sim
