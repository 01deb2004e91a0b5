#include "sim/switch/port.hpp"

#include "sim/fabric.hpp"

#include <algorithm>
#include <cmath>

namespace moehub::sim {

Port::Port(Fabric& fabric, const Spec& spec) : spec_(spec) {
    if (!spec.credits) return;
    for (Fifo& fifo : fifos_) fifo.pool = fabric.add_pool(spec.self, *spec.wire);
}

/// Parts of a gathered response give their credits back when they come.
void Port::take(Fabric& fabric, const Event& event) {
    if (!event.unit.gather) return accept(fabric, event);
    if (event.unit.phase != Phase::head) {
        fabric.release(event.unit.hold, event.time, event.unit.flits);
    }
    if (!gather_) gather_ = std::make_unique<Gather>(spec_.sums, *spec_.wire);
    for (const Event& passed : gather_->take(fabric, event)) accept(fabric, passed);
}

void Port::accept(Fabric& fabric, const Event& event) {
    if (!spec_.packets) return flow(fabric, event);
    fifos_[class_of(event.unit.kind)].units.push(event.time).unit = event.unit;
    next_ = 0;
}

// Packet grain.

Ps Port::run(Fabric& fabric, Ps until) {
    for (;;) {
        std::size_t chosen = 0;
        next_ = next_start(fabric, chosen);
        if (next_ >= until) return next_;
        turn_ = 1 - static_cast<unsigned>(chosen);
        depart(fabric, fifos_[chosen], next_);
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
    free_at_ = start + spec_.wire->serialise(unit.flits);
    busy_.add(start, free_at_, unit.flits);
    fabric.release(unit.hold, free_at_, unit.flits);
    if (fifo.pool != kNoPool) fabric.pool(fifo.pool).take(unit.flits);
    fabric.push(spec_.behind, unit, free_at_ + spec_.wire->latency, spec_.self).hold = fifo.pool;
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
    if (unit.phase != Phase::tail) fabric.release(unit.hold, departure, unit.flits);
    if (unit.phase == Phase::head) return;  // only the tail's arrival counts at a GPU
    busy_.add(departure - spec_.wire->serialise(unit.flits), departure, unit.flits);
    Unit& sent = fabric.push(spec_.behind, unit, departure + spec_.wire->latency, spec_.self);
    sent.hold = kNoPool;
    sent.phase = Phase::whole;
}

/// When what has just been added to the backlog has left.
Ps Port::drained(const Unit& unit, Ps now) const {
    return now + std::llround(fluid_.wait(class_of(unit.kind))) +
           spec_.wire->lane_extra(first_packet_flits(unit));
}

Ps Port::flow_whole(const Event& event) {
    const auto work = static_cast<double>(spec_.wire->serialise(event.unit.flits));
    fluid_.add(class_of(event.unit.kind), work, 0);
    return drained(event.unit, event.time);
}

/// First packet of a train: its work is here, the rest comes at an even rate until the tail.
Ps Port::flow_head(const Event& event) {
    const auto first = static_cast<double>(spec_.wire->serialise(first_packet_flits(event.unit)));
    const auto work = static_cast<double>(spec_.wire->serialise(event.unit.flits));
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
    const auto first = static_cast<double>(spec_.wire->serialise(first_packet_flits(unit)));
    const auto work = static_cast<double>(spec_.wire->serialise(unit.flits));
    const double counted = first + train->rate * static_cast<double>(event.time - train->head);
    fluid_.add(class_of(unit.kind), work - counted, -train->rate);
    *train = arriving_.back();
    arriving_.pop_back();
    if (arriving_.empty()) fluid_.still();
    return drained(unit, event.time);
}

}  // namespace moehub::sim
