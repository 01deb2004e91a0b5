#include "sim/switch/port.hpp"

#include "sim/fabric.hpp"
#include "sim/recorder.hpp"

#include <algorithm>
#include <cmath>

namespace moehub::sim {

Port::Port(Fabric& fabric, const Spec& spec) : spec_(spec) {
    if (!spec.credits) return;
    for (Fifo& fifo : fifos_) fifo.pool = fabric.add_pool(spec.self, *spec.wire);
}

/// Parts of a gathered response give their credits back when they come: a train from its head on,
/// for the buffer empties as fast as it fills.
void Port::take(Fabric& fabric, const Event& event) {
    if (!event.train.gather) return accept(fabric, event);
    if (event.train.phase != Phase::tail) {
        fabric.release(event.train.hold, event.time, event.train.flits);
        if (Recorder* recorder = fabric.recorder())
            recorder->count(spec_.self, "gather", event.time, event.train.packets);
    }
    if (!gather_) {
        const GroupId group = fabric.transfer(event.train.transfer).group;
        gather_ = std::make_unique<Gather>(fabric.sum_packets(group), *spec_.wire);
    }
    for (const Event& passed : gather_->take(fabric, event)) accept(fabric, passed);
}

void Port::accept(Fabric& fabric, const Event& event) {
    if (!spec_.packets) return flow(fabric, event);
    fifos_[class_of(event.train.kind)].trains.push(event.time).train = event.train;
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
        if (fifo.trains.empty()) continue;
        const Staged& head = fifo.trains.front();
        Ps start = std::max(free_at_, head.time);
        if (fifo.pool != kNoPool) start = fabric.pool(fifo.pool).ready(head.train.flits, start);
        if (start >= best) continue;
        best = start;
        chosen = i;
    }
    return best;
}

void Port::depart(Fabric& fabric, Fifo& fifo, Ps start) {
    const Train& train = fifo.trains.front().train;
    free_at_ = start + spec_.wire->serialise(train.flits);
    busy_.add(start, free_at_, train.flits);
    fabric.release(train.hold, free_at_, train.flits);
    if (fifo.pool != kNoPool) fabric.pool(fifo.pool).take(train.flits);
    const Wire& wire = *spec_.wire;
    const Ps arrival = free_at_ + wire.lane_extra(first_packet_flits(train)) + wire.latency +
                       fabric.replication(train);
    fabric.push(spec_.behind, train, arrival, spec_.self).hold = fifo.pool;
    fifo.trains.drop();
}

// Row grain.

void Port::flow(Fabric& fabric, const Event& event) {
    const Train& train = event.train;
    fluid_.advance(event.time);
    fluid_.set_packet(class_of(train.kind), first_packet_flits(train));
    Ps departure = 0;
    switch (train.phase) {
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
    if (train.phase != Phase::tail) fabric.release(train.hold, departure, train.flits);
    if (train.phase == Phase::head) return;  // only the tail's arrival counts at a GPU
    busy_.add(departure - spec_.wire->serialise(train.flits), departure, train.flits);
    const Ps arrival = departure + spec_.wire->latency + fabric.replication(train);
    Train& sent = fabric.push(spec_.behind, train, arrival, spec_.self);
    sent.hold = kNoPool;
    sent.phase = Phase::whole;
}

/// When what has just been added to the backlog has left.
Ps Port::drained(const Train& train, Ps now) const {
    return now + std::llround(fluid_.wait(class_of(train.kind))) +
           spec_.wire->lane_extra(first_packet_flits(train));
}

Ps Port::flow_whole(const Event& event) {
    const auto work = static_cast<double>(spec_.wire->serialise(event.train.flits));
    fluid_.add(class_of(event.train.kind), work, 0);
    return drained(event.train, event.time);
}

/// First packet of a train: its work is here, the rest comes at an even rate until the tail.
Ps Port::flow_head(const Event& event) {
    const auto first = static_cast<double>(spec_.wire->serialise(first_packet_flits(event.train)));
    const auto work = static_cast<double>(spec_.wire->serialise(event.train.flits));
    // Up and down links are alike, so a train comes in as fast as it could leave.
    const double rate = work > first ? 1.0 : 0.0;
    fluid_.add(class_of(event.train.kind), first, rate);
    arriving_.push_back(
        {event.train.transfer, event.train.index, event.train.src, event.time, rate});
    return drained(event.train, event.time);
}

/// Last packet: the train's work is all here; what the even rate over- or understated is mended.
Ps Port::flow_tail(const Event& event) {
    const Train& train = event.train;
    const auto arriving =
        std::find_if(arriving_.begin(), arriving_.end(), [&](const Arriving& other) {
            return other.transfer == train.transfer && other.index == train.index &&
                   other.src == train.src;
        });
    if (arriving == arriving_.end()) throw std::logic_error("a train's tail came without its head");
    const auto first = static_cast<double>(spec_.wire->serialise(first_packet_flits(train)));
    const auto work = static_cast<double>(spec_.wire->serialise(train.flits));
    const double counted =
        first + arriving->rate * static_cast<double>(event.time - arriving->head);
    fluid_.add(class_of(train.kind), work - counted, -arriving->rate);
    *arriving = arriving_.back();
    arriving_.pop_back();
    if (arriving_.empty()) fluid_.still();
    return drained(train, event.time);
}

void FluidLink::advance(Ps now) {
    double left = static_cast<double>(now - last_);
    last_ = now;
    while (left > 0) left -= step(left);
}

/// Moves on until `left` has passed or a backlog has ended; returns the time that took.
double FluidLink::step(double left) {
    const bool busy[2] = {backlog_[0] > 0 || rate_[0] > share(0),
                          backlog_[1] > 0 || rate_[1] > share(1)};
    if (!busy[0] && !busy[1]) return left;
    double gain[2];  // change of each backlog, per time
    for (const std::size_t i : {0u, 1u}) {
        const double served = busy[0] && busy[1] ? share(i) : busy[i] ? 1 - rate_[1 - i] : rate_[i];
        gain[i] = rate_[i] - served;
    }
    double time = left;
    for (const std::size_t i : {0u, 1u})
        if (backlog_[i] > 0 && gain[i] < 0) time = std::min(time, backlog_[i] / -gain[i]);
    for (const std::size_t i : {0u, 1u}) {
        const double after = backlog_[i] + gain[i] * time;
        backlog_[i] = after > 1e-6 ? after : 0;  // what is left then is rounding
    }
    return time;
}

void FluidLink::add(std::size_t kind, double work, double rate) {
    backlog_[kind] = std::max(0.0, backlog_[kind] + work);
    rate_[kind] = std::max(0.0, rate_[kind] + rate);
}

double FluidLink::wait(std::size_t kind) const {
    return std::min(backlog_[kind] / share(kind), backlog_[0] + backlog_[1]);
}

}  // namespace moehub::sim
