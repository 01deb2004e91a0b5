/// The sending side of a GPU's hub: transfers waiting to be cut into units, and the uplinks (one
/// per switch, and the NIC) that put units on the wire.
///
/// An uplink serves its virtual channels: responses, which always drain, and requests, by
/// destination, take turns. Requests reach the channels in one of three ways:
/// - per peer: each uplink cuts its own part of the transfers, one queue per peer, in turn. Nothing
///   but missing credit of its own channel can hold a peer's packet up.
/// - shared FIFO: all requests of the GPU stand in one line, whose head moves on when its channel's
///   staging buffer has room. A busy uplink holds up all others: head-of-line blocking. Each SM
///   stores one row at a time, so as many rows as there are SMs take turns in the line.
/// - RPM: stores wait in a write buffer with a partition per peer (hub/rpm.hpp), from which a free
///   channel takes the next line, peers in turn. A full partition holds up its own peer alone.
#pragma once
#include "sim/event.hpp"
#include "sim/hub/rpm.hpp"
#include "sim/ring.hpp"
#include "sim/transfer.hpp"
#include "sim/wire.hpp"

#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

namespace moehub::sim {

class Fabric;
enum class Queueing;

class Egress {
  public:
    Egress(Fabric& fabric, GpuId gpu);

    Ps run(Fabric& fabric, std::span<const Event> events, Ps until);

    /// A new response that may go from `time` on, which lies in a later window; the caller fills in
    /// all of it but the order, which is by time.
    Unit& add_response(std::uint32_t uplink, Ps time);

    /// Flits put on the links inside the node, and on the NIC.
    std::int64_t link_flits() const;
    std::int64_t nic_flits() const;
    const RpmStats& rpm_stats() const { return rpm_stats_; }

  private:
    struct Partition {  // of the RPM: one peer's
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
    };
    struct Cursor {  // where an uplink is in the list of transfers to one peer
        TransferId transfer = kNoTransfer;
        std::uint32_t index = 0;  ///< of the transfer's unit that is next on this uplink
        std::uint32_t count = 0;  ///< of the transfer's units
        std::uint64_t line = 0;   ///< of the transfer's first unit
        std::uint64_t group = 0;  ///< of lines (Topology::uplink) that holds the unit
        std::uint64_t end = 0;    ///< behind the transfer's last group
    };
    struct Channel {
        Ring<Staged> units;        ///< ready for the wire, oldest first
        std::int64_t packets = 0;  ///< of requests in units
        PoolId pool = kNoPool;
        std::vector<Cursor*> peers;          ///< per peer: with requests on this channel
        std::vector<Partition*> partitions;  ///< RPM: of this channel's peers
        std::size_t turn = 0;                ///< whose is next
    };
    struct Choice {  // the next unit to leave, if it starts before the end asked for
        Ps start = kNever;
        std::uint32_t channel = 0;
    };
    struct Uplink {
        const Wire* wire = nullptr;
        std::uint32_t number = 0;
        Ps free_at = 0;
        std::uint32_t turn = 1;      ///< request channel that is served first
        bool answered_last = false;  ///< a response went last, so requests go first
        std::uint32_t filled = 0;    ///< bitmap of channels with units
        std::int64_t sent = 0;
        Choice next;                    ///< what choose() said, while nothing changed since
        bool chosen = true;             ///< `next` holds; else the uplink is in stale_
        Ps waits = kNever;              ///< RPM: when a line that may still grow goes as it is
        std::uint32_t requests = 1;     ///< request channels
        std::vector<Channel> channels;  ///< 0: responses; then requests
        std::unordered_map<GpuId, Cursor> cursors;  ///< by peer: those that send
    };
    static std::uint32_t channel_of(const Uplink& uplink, GpuId dst) {
        return 1 + dst % uplink.requests;
    }

    Ps run_until(Fabric& fabric, Ps until);
    void enqueue(Fabric& fabric, TransferId id);
    Unit& stage(Uplink& uplink, std::uint32_t channel, Ps time);
    Choice choose(Fabric& fabric, const Uplink& uplink, Ps until) const;
    /// The uplink whose next unit leaves first of all, and when and on which channel.
    struct First {
        Uplink* uplink = nullptr;
        Choice choice;
    };
    First choose_first(Fabric& fabric, Ps until);
    void choose_again(Uplink& uplink) {
        if (uplink.chosen) stale_.push_back(uplink.number);
        uplink.chosen = false;
    }
    void depart(Fabric& fabric, Uplink& uplink, const Choice& choice);
    void emit(Fabric& fabric, const Uplink& uplink, const Unit& unit, PoolId hold, Ps start);

    // Per peer.
    Ps run_uplink(Fabric& fabric, Uplink& uplink, Ps until);
    void refill(Fabric& fabric, Uplink& uplink, std::uint32_t channel);
    void open(Fabric& fabric, const Uplink& uplink, Cursor& cursor, TransferId id) const;
    bool settle(Fabric& fabric, const Uplink& uplink, Cursor& cursor) const;
    bool spread(const Fabric& fabric, const Uplink& uplink) const;

    // Shared FIFO.
    Ps run_shared(Fabric& fabric, Ps until);
    void feed_from_fifo(Fabric& fabric);
    bool next_lane(Fabric& fabric);

    // RPM.
    Ps run_rpm(Fabric& fabric, Ps until);
    Partition& partition_of(Fabric& fabric, GpuId peer);
    void enqueue_rpm(Fabric& fabric, TransferId id);
    void open_head(Fabric& fabric, Partition& partition) const;
    void shape_next(const Fabric& fabric, Partition& partition) const;
    void advance_head(Fabric& fabric, Partition& partition) const;
    std::uint64_t fill(Fabric& fabric, Partition& partition, Ps now);
    void fill_and_take(Fabric& fabric, Partition& partition, Ps now);
    void stage_line(Uplink& uplink, const RpmLine& line, GpuId peer, Ps now);
    void take_line(Fabric& fabric, Uplink& uplink, std::uint32_t channel, Ps now);
    void take_timed_out(Fabric& fabric);

    GpuId gpu_;
    Queueing queueing_;
    std::vector<Uplink> uplinks_;
    // Shared FIFO and RPM: when each uplink's next unit leaves, but for those of stale_.
    std::vector<Ps> starts_;
    std::vector<std::uint32_t> stale_;
    std::unordered_map<GpuId, TransferId> last_;  ///< by peer: end of the list of its transfers
    TransferId fifo_head_ = kNoTransfer;          ///< first that no lane has taken
    TransferId fifo_tail_ = kNoTransfer;
    std::vector<TransferId> lanes_;  ///< rows being stored, which take turns in the line
    std::size_t lane_ = 0;           ///< whose turn it is
    Ps fifo_time_ = 0;               ///< of the last departure, which made room
    std::vector<std::unique_ptr<Partition>> partitions_;  ///< by peer
    Ps waits_ = kNever;                                   ///< earliest of the uplinks'
    RpmStats rpm_stats_;
};

}  // namespace moehub::sim
