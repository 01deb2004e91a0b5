/// The sending side of a GPU's hub: its uplinks (uplinks.hpp), responses, which always drain, and
/// requests, which reach the uplinks' channels in one of three ways: per_peer.hpp, shared_fifo.hpp,
/// packet_manager.hpp.
#pragma once
#include "sim/hub/packet_manager.hpp"
#include "sim/hub/per_peer.hpp"
#include "sim/hub/shared_fifo.hpp"
#include "sim/hub/uplinks.hpp"

#include <span>
#include <variant>

namespace moehub::sim {

class Egress {
  public:
    Egress(Fabric& fabric, GpuId gpu);

    Ps run(Fabric& fabric, std::span<const Event> events, Ps until);

    /// A new response that may go from `time` on, which lies in a later window; the caller fills in
    /// all of it but the order, which is by time.
    Train& add_response(std::uint32_t uplink, Ps time) {
        return uplinks_.stage(uplinks_[uplink], 0, time);
    }

    const Uplinks& uplinks() const { return uplinks_; }
    /// Null where there is no RPM.
    const RpmStats* rpm_stats() const;

  private:
    using Requests = std::variant<PerPeerQueues, SharedFifo, PacketManager>;

    template <class Queue>
    Ps run_with(Queue& queue, Fabric& fabric, std::span<const Event> events, Ps until);

    Uplinks uplinks_;
    Requests requests_;
};

}  // namespace moehub::sim
