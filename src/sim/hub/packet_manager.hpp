/// MoE-Hub's Runtime Packet Manager at work: requests wait in a write buffer with a partition per
/// peer (rpm.hpp), from which a free channel takes the next line, peers in turn. A full partition
/// holds up its own peer alone.
#pragma once
#include "sim/hub/rpm.hpp"
#include "sim/hub/uplinks.hpp"
#include "sim/transfer.hpp"

#include <memory>
#include <vector>

namespace moehub::sim {

class PacketManager {
  public:
    explicit PacketManager(const Uplinks& uplinks);

    void post(Fabric& fabric, Uplinks& uplinks, TransferId id);
    Ps run(Fabric& fabric, Uplinks& uplinks, Ps until);
    static constexpr bool kEachByItself = false;

    const RpmStats& stats() const { return stats_; }

  private:
    struct Partition {  // one peer's
        Partition(GpuId of, std::int32_t entries, Ps timer) : peer(of), lines(entries, timer) {}
        GpuId peer;
        RpmPartition lines;
        TransferId head = kNoTransfer;  ///< first transfer not yet all in the partition
        TransferId tail = kNoTransfer;
        TransferId second = kNoTransfer;  ///< behind the head, if it was there when that came up
        RpmLine next;                     ///< of the head, to enter as soon as there is room
        Ps ready = 0;                     ///< the head's
        Bytes left = 0;                   ///< of the head, from `next` on
        std::uint64_t number = 0;         ///< of `next` among all lines (Topology::uplink)
        std::int64_t merged = 0;          ///< stores that `next` is made of, beyond one per packet
        Ps open = 0;                      ///< from the first of a line's stores to the last
    };
    struct Peers {  // of a channel
        std::vector<Partition*> partitions;
        std::size_t turn = 0;  ///< whose is next
    };
    struct Link {
        std::vector<Peers> channels;
        Ps waits = kNever;  ///< when a line that may still grow goes as it is
    };

    Partition& partition_of(Fabric& fabric, const Uplinks& uplinks, GpuId peer);
    void open_head(Fabric& fabric, Partition& partition) const;
    void shape_next(const Fabric& fabric, Partition& partition) const;
    void advance_head(Fabric& fabric, Partition& partition) const;
    std::uint64_t fill(Fabric& fabric, Partition& partition, Ps now);
    void fill_and_take(Fabric& fabric, Uplinks& uplinks, Partition& partition, Ps now);
    void stage_line(Uplinks& uplinks, Uplinks::Uplink& uplink, const RpmLine& line, GpuId peer,
                    Ps now) const;
    void take_line(Fabric& fabric, Uplinks& uplinks, Uplinks::Uplink& uplink, std::uint32_t channel,
                   Ps now);
    void take_timed_out(Fabric& fabric, Uplinks& uplinks);

    std::vector<Link> links_;                             ///< by uplink
    std::vector<std::unique_ptr<Partition>> partitions_;  ///< by peer
    Ps waits_ = kNever;                                   ///< earliest of the links'
    RpmStats stats_;
};

}  // namespace moehub::sim
