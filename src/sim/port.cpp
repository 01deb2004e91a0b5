#include "sim/port.hpp"

#include "sim/fabric.hpp"

#include <algorithm>
#include <cmath>

namespace moehub::sim {

Port::Port(Fabric& fabric, std::uint32_t number)
    : number_(number),
      wire_(&fabric.wire_of_port(number)),
      self_(fabric.layout().port(number)),
      packets_(fabric.options().grain == Grain::packet || wire_ != &fabric.link()) {
    if (!fabric.port_has_credits(number)) return;
    for (Fifo& fifo : fifos_) fifo.pool = fabric.add_pool(self_, *wire_);
}

Ps Port::run(Fabric& fabric, std::span<const Event> events, Ps until) {
    if (packets_) return run_packets(fabric, events, until);
    for (Event event : events) {
        if (event.unit.gather) {
            if (!gathered(fabric, event)) continue;
            // Head and tail may have been completed by different GPUs: one name for both.
            event.unit.src = event.unit.dst;
        }
        flow(fabric, event);
    }
    return kNever;
}

bool Port::gathered(Fabric& fabric, const Event& event) {
    const Unit& unit = event.unit;
    if (unit.phase != Phase::head) fabric.release(unit.hold, event.time, unit.flits);
    const std::uint64_t key = (std::uint64_t{unit.transfer} << 32) | unit.index;
    Gathered& parts = gathering_[key];
    const std::uint32_t seen = unit.phase == Phase::head ? ++parts.heads : ++parts.tails;
    if (seen < fabric.layout().gpus_per_node) return false;
    if (unit.phase != Phase::head) gathering_.erase(key);
    return true;
}

// Packet grain.

Ps Port::run_packets(Fabric& fabric, std::span<const Event> events, Ps until) {
    for (const Event& event : events) {
        if (event.unit.gather && !gathered(fabric, event)) continue;
        fifos_[class_of(event.unit.kind)].units.push(event.time).unit = event.unit;
    }
    for (;;) {
        std::size_t chosen = 0;
        const Ps start = next_start(fabric, chosen);
        if (start >= until) return start;
        turn_ = 1 - static_cast<unsigned>(chosen);
        depart(fabric, fifos_[chosen], start);
    }
}

/// The earliest start of a head; among equals responses and requests take turns.
Ps Port::next_start(Fabric& fabric, std::size_t& chosen) {
    Ps best = kNever;
    for (const std::size_t i : {std::size_t{turn_}, std::size_t{1 - turn_}}) {
        const Fifo& fifo = fifos_[i];
        if (fifo.units.empty()) continue;
        const Staged& head = fifo.units.front();
        Ps start = std::max(free_at_, head.time);
        if (fifo.pool != kNoPool) start = fabric.pool(fifo.pool).ready(head.unit.flits, start);
        if (start >= best) continue;
        best = start;
        chosen = i;
    }
    return best;
}

void Port::depart(Fabric& fabric, Fifo& fifo, Ps start) {
    const Unit& unit = fifo.units.front().unit;
    free_at_ = start + wire_->serialise(unit.flits);
    sent_ += unit.flits;
    // A gathered response gave its credits back when its parts came.
    if (!unit.gather) fabric.release(unit.hold, free_at_, unit.flits);
    if (fifo.pool != kNoPool) fabric.pool(fifo.pool).take(unit.flits);
    const ComponentId next = fabric.layout().after_port(number_, unit);
    fabric.push(next, unit, free_at_ + wire_->latency, self_).hold = fifo.pool;
    fifo.units.drop();
}

// Row grain.

void Port::flow(Fabric& fabric, const Event& event) {
    const Unit& unit = event.unit;
    fluid_.advance(event.time);
    fluid_.set_packet(class_of(unit.kind), first_packet_flits(unit));
    Ps departure = 0;
    switch (unit.phase) {
        case Phase::whole:
            departure = flow_whole(event);
            break;
        case Phase::head:
            departure = flow_head(event);
            break;
        case Phase::tail:
            departure = flow_tail(event);
            break;
    }
    // The buffer drains from the head's departure on, as fast as the sender can fill it again.
    if (unit.phase != Phase::tail && !unit.gather) fabric.release(unit.hold, departure, unit.flits);
    if (unit.phase == Phase::head) return;  // only the tail's arrival counts at a GPU
    sent_ += unit.flits;
    const ComponentId next = fabric.layout().after_port(number_, unit);
    Unit& sent = fabric.push(next, unit, departure + wire_->latency, self_);
    sent.hold = kNoPool;
    sent.phase = Phase::whole;
}

/// When what has just been added to the backlog has left.
Ps Port::drained(const Unit& unit, Ps now) const {
    return now + std::llround(fluid_.wait(class_of(unit.kind))) +
           wire_->lane_extra(first_packet_flits(unit));
}

Ps Port::flow_whole(const Event& event) {
    const auto work = static_cast<double>(wire_->serialise(event.unit.flits));
    fluid_.add(class_of(event.unit.kind), work, 0);
    return drained(event.unit, event.time);
}

/// First packet of a train: its work is here, the rest comes at an even rate until the tail.
Ps Port::flow_head(const Event& event) {
    const auto first = static_cast<double>(wire_->serialise(first_packet_flits(event.unit)));
    const auto work = static_cast<double>(wire_->serialise(event.unit.flits));
    // Up and down links are alike, so a train comes in as fast as it could leave.
    const double rate = work > first ? 1.0 : 0.0;
    fluid_.add(class_of(event.unit.kind), first, rate);
    arriving_.push_back({event.unit.transfer, event.unit.index, event.unit.src, event.time, rate});
    return drained(event.unit, event.time);
}

/// Last packet: the train's work is all here; what the even rate over- or understated is mended.
Ps Port::flow_tail(const Event& event) {
    const Unit& unit = event.unit;
    const auto train = std::find_if(arriving_.begin(), arriving_.end(), [&](const Arriving& other) {
        return other.transfer == unit.transfer && other.index == unit.index &&
               other.src == unit.src;
    });
    if (train == arriving_.end()) throw std::logic_error("a train's tail came without its head");
    const auto first = static_cast<double>(wire_->serialise(first_packet_flits(unit)));
    const auto work = static_cast<double>(wire_->serialise(unit.flits));
    const double counted = first + train->rate * static_cast<double>(event.time - train->head);
    fluid_.add(class_of(unit.kind), work - counted, -train->rate);
    *train = arriving_.back();
    arriving_.pop_back();
    if (arriving_.empty()) fluid_.still();
    return drained(unit, event.time);
}

}  // namespace moehub::sim
