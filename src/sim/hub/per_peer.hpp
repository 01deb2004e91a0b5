/// Requests in a queue per peer without limit: a library that paces each peer's channel. Each
/// uplink cuts its own part of the transfers, peers in turn; nothing but missing credit of its own
/// channel can hold a peer's packet up. Where loads are separate (FabricOptions), a peer has a
/// queue for them and one for the rest.
#pragma once
#include "sim/hub/uplinks.hpp"
#include "sim/transfer.hpp"

#include <unordered_map>
#include <vector>

namespace moehub::sim {

class PerPeerQueues {
  public:
    explicit PerPeerQueues(const Uplinks& uplinks);

    void post(Fabric& fabric, Uplinks& uplinks, TransferId id);
    Ps run(Fabric& fabric, Uplinks& uplinks, Ps until);
    /// Whether what stands before a post must have left even at the post's own instant.
    static constexpr bool kEachByItself = false;

  private:
    using Peer = std::uint32_t;  ///< a GPU, or loads from it where they are separate
    struct Cursor {              // where an uplink is in the list of transfers to one peer
        TransferId transfer = kNoTransfer;
        std::uint32_t index = 0;  ///< of the transfer's train that is next on this uplink
        std::uint32_t count = 0;  ///< of the transfer's trains
        std::uint64_t line = 0;   ///< of the transfer's first train
        std::uint64_t group = 0;  ///< of lines (Topology::uplink) that holds the train
        std::uint64_t end = 0;    ///< behind the transfer's last group
    };
    struct Queue {                   // of a channel
        std::vector<Cursor*> peers;  ///< with requests
        std::size_t turn = 0;        ///< whose is next
    };
    struct Link {
        std::vector<Queue> queues;                 ///< by channel
        std::unordered_map<Peer, Cursor> cursors;  ///< by peer: those that send
    };

    Ps run_uplink(Fabric& fabric, Uplinks& uplinks, Uplinks::Uplink& uplink, Ps until);
    void refill(Fabric& fabric, Uplinks& uplinks, Uplinks::Uplink& uplink, std::uint32_t channel);
    void open(Fabric& fabric, const Uplinks::Uplink& uplink, Cursor& cursor, TransferId id) const;
    bool settle(Fabric& fabric, const Uplinks::Uplink& uplink, Cursor& cursor) const;

    std::vector<Link> links_;                    ///< by uplink
    std::unordered_map<Peer, TransferId> last_;  ///< by peer: end of the list of its transfers
};

}  // namespace moehub::sim
