/// A switch's output port, and the link behind it as a fluid.
#pragma once
#include "sim/event.hpp"
#include "sim/queues.hpp"
#include "sim/switch/gather.hpp"
#include "sim/time_bins.hpp"
#include "sim/wire.hpp"

#include <moehub/units.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace moehub::sim {

/// A link as a fluid: work of two classes waits and arrives at steady rates, and while both have
/// work the link divides itself between them as packets taking turns would:
///     share of a class = its packets' size / sum of both classes' packet sizes.
/// Work added now has left after min(own backlog / own share, backlog of both).
class FluidLink {
  public:
    /// Lets time pass. Must not go back.
    void advance(Ps now);
    /// Adds work in picoseconds of this link, and work per time that arrives from now on.
    void add(std::size_t kind, double work, double rate);
    /// Sets the size of the packets that this class now has.
    void set_packet(std::size_t kind, double flits) { packet_[kind] = flits; }
    /// Picoseconds until the backlog of the class has left, if nothing more comes.
    double wait(std::size_t kind) const;
    /// Forgets rates; for when nothing arrives any more, so that no rounding is carried on.
    void still() { rate_[0] = rate_[1] = 0; }

  private:
    double share(std::size_t kind) const { return packet_[kind] / (packet_[0] + packet_[1]); }
    double step(double left);

    Ps last_ = 0;
    double backlog_[2] = {0, 0};
    double rate_[2] = {0, 0};
    double packet_[2] = {1, 1};
};

/// A switch's output port: the queue in front of a link that leaves the switch, and the unit that
/// gathers responses on their way to it. Packets (packet grain) wait in a FIFO per class and leave
/// when the next buffer has credit, the classes taking turns. Trains (row grain) flow through a
/// fluid FIFO:
///     tail departure = tail arrival + wait of the backlog at tail arrival,
/// the backlog growing at (rate of all arriving trains − 1).

class Fabric;

class Port {
  public:
    struct Spec {
        const Wire* wire = nullptr;
        ComponentId self = 0;    ///< switch that the port is of
        ComponentId behind = 0;  ///< component at the other end
        bool packets = true;  ///< packets travel singly: packet grain, and every link between nodes
        bool credits = false;  ///< the buffer at the other end is finite
    };
    Port(Fabric& fabric, const Spec& spec);

    /// A train for this port, in the order of the events.
    void take(Fabric& fabric, const Event& event);
    /// Sends what starts before `until`; returns when the next may start.
    Ps run(Fabric& fabric, Ps until);
    /// Whether `run` has something to do before `until`, or may have now that credits came.
    bool due(Ps until) const { return next_ < until || spec_.credits; }

    Ps next() const { return next_; }
    bool idle() const { return fifos_[0].trains.empty() && fifos_[1].trains.empty(); }

    const Busy& busy() const { return busy_; }
    /// The gathering unit; null where nothing was ever gathered.
    const Gather* gather() const { return gather_.get(); }

  private:
    struct Fifo {
        Ring<Staged> trains;
        PoolId pool = kNoPool;
    };
    struct Arriving {  // a train whose tail is still to come
        TransferId transfer;
        std::uint32_t index;
        GpuId src;
        Ps head;  ///< arrival of its first packet
        double rate;
    };

    void accept(Fabric& fabric, const Event& event);
    Ps next_start(Fabric& fabric, std::size_t& chosen);
    void depart(Fabric& fabric, Fifo& fifo, Ps start);

    void flow(Fabric& fabric, const Event& event);
    Ps flow_whole(const Event& event);
    Ps flow_head(const Event& event);
    Ps flow_tail(const Event& event);
    Ps drained(const Train& train, Ps now) const;

    Spec spec_;
    Busy busy_;
    Ps free_at_ = 0;
    Ps next_ = kNever;   ///< when a packet may start, as far as known
    Fifo fifos_[2];      ///< 0: responses, 1: requests
    unsigned turn_ = 0;  ///< class whose turn it is
    FluidLink fluid_;
    std::vector<Arriving> arriving_;
    std::unique_ptr<Gather> gather_;
};

}  // namespace moehub::sim
