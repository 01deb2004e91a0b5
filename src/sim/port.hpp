/// A switch's output port: the queue in front of a link that leaves the switch, and the in-switch
/// unit that merges gathered responses. Packets (packet grain) wait in a FIFO per class and leave
/// when the next buffer has credit, the classes taking turns. Trains (row grain) flow through a
/// fluid FIFO:
///     tail departure = tail arrival + wait of the backlog at tail arrival,
/// the backlog growing at (rate of all arriving trains − 1).
#pragma once
#include "sim/event.hpp"
#include "sim/fluid.hpp"
#include "sim/ring.hpp"
#include "sim/wire.hpp"

#include <span>
#include <unordered_map>
#include <vector>

namespace moehub::sim {

class Fabric;

class Port {
  public:
    Port(Fabric& fabric, std::uint32_t number);

    Ps run(Fabric& fabric, std::span<const Event> events, Ps until);

    std::int64_t flits() const { return sent_; }

  private:
    struct Fifo {
        Ring<Staged> units;
        PoolId pool = kNoPool;
    };
    struct Arriving {  // a train whose tail is still to come
        TransferId transfer;
        std::uint32_t index;
        GpuId src;
        Ps head;  ///< arrival of its first packet
        double rate;
    };
    struct Gathered {
        std::uint32_t heads = 0;
        std::uint32_t tails = 0;
    };

    Ps run_packets(Fabric& fabric, std::span<const Event> events, Ps until);
    Ps next_start(Fabric& fabric, std::size_t& chosen);
    void depart(Fabric& fabric, Fifo& fifo, Ps start);

    void flow(Fabric& fabric, const Event& event);
    Ps flow_whole(const Event& event);
    Ps flow_head(const Event& event);
    Ps flow_tail(const Event& event);
    Ps drained(const Unit& unit, Ps now) const;

    /// False while other parts of a gathered response are missing; the last one passes.
    bool gathered(Fabric& fabric, const Event& event);

    std::uint32_t number_;
    const Wire* wire_;
    ComponentId self_;
    bool packets_;  ///< of single packets, not trains: packet grain, and every link between nodes
    std::int64_t sent_ = 0;
    Ps free_at_ = 0;
    Fifo fifos_[2];      ///< 0: responses, 1: requests
    unsigned turn_ = 0;  ///< whose it is
    FluidLink fluid_;
    std::vector<Arriving> arriving_;
    std::unordered_map<std::uint64_t, Gathered> gathering_;
};

}  // namespace moehub::sim
