/// The sending side of a GPU's hub: its uplinks, responses, which always drain, and
/// requests, which reach the uplinks' channels in one of three ways.
#pragma once
#include "sim/event.hpp"
#include "sim/hub/rpm.hpp"
#include "sim/queues.hpp"
#include "sim/time_bins.hpp"
#include "sim/transfer.hpp"
#include "sim/wire.hpp"

#include <memory>
#include <span>
#include <unordered_map>
#include <variant>
#include <vector>

namespace moehub::sim {

class Fabric;
class Recorder;

/// A GPU's uplinks: one to each switch (in a mesh to each peer), and the NIC. Each has virtual
/// channels, responses and requests by destination, in which trains are staged ahead of the wire;
/// the channels take turns.
class Uplinks {
  public:
    Uplinks(Fabric& fabric, GpuId gpu);

    struct Channel {
        Ring<Staged> trains;       ///< ready for the wire, oldest first
        std::int64_t packets = 0;  ///< packets of requests in `trains`
        PoolId pool = kNoPool;
    };
    struct Choice {  // the next train to leave, if it starts before the end asked for
        Ps start = kNever;
        std::uint32_t channel = 0;
    };
    struct Uplink {
        const Wire* wire = nullptr;
        std::uint32_t number = 0;
        Ps free_at = 0;
        std::uint32_t turn = 1;         ///< request channel that is served first
        bool answered_last = false;     ///< a response went last, so requests go first
        std::uint32_t filled = 0;       ///< bitmap of channels with trains
        Choice next;                    ///< what choose() said, while nothing changed since
        bool chosen = true;             ///< `next` holds; else the uplink is in stale_
        std::uint32_t requests = 1;     ///< request channels
        std::vector<Channel> channels;  ///< 0: responses; then requests
        Busy busy;
    };
    static std::uint32_t channel_of(const Uplink& uplink, GpuId dst) {
        return 1 + dst % uplink.requests;
    }
    GpuId gpu() const { return gpu_; }
    std::size_t size() const { return uplinks_.size(); }
    Uplink& operator[](std::size_t number) { return uplinks_[number]; }
    std::span<Uplink> all() { return uplinks_; }
    std::span<const Uplink> all() const { return uplinks_; }

    /// A new train of a channel that may go from `time` on; the caller fills it in.
    Train& stage(Uplink& uplink, std::uint32_t channel, Ps time);
    bool empty(const Uplink& uplink, std::uint32_t channel) const {
        return ((uplink.filled >> channel) & 1) == 0;
    }

    Choice choose(Fabric& fabric, const Uplink& uplink, Ps until) const;
    /// The uplink whose next train leaves first of all, and when and on which channel. Looks again
    /// only at uplinks of which something has changed.
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

  private:
    void record(Recorder& recorder, const Fabric& fabric, const Train& train, const Choice& choice,
                Ps end) const;
    void emit(Fabric& fabric, const Uplink& uplink, const Train& train, PoolId hold, Ps start);

    GpuId gpu_;
    std::vector<Uplink> uplinks_;
    std::vector<Ps> starts_;  ///< when each uplink's next train leaves, but for those of stale_
    std::vector<std::uint32_t> stale_;
};

/// Requests in a queue per peer without limit: a library that paces each peer's channel. Each
/// uplink cuts its own part of the transfers, peers in turn; nothing but missing credit of its own
/// channel can hold a peer's packet up. Where loads are separate (FabricOptions), a peer has a
/// queue for them and one for the rest.
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
        std::uint32_t index = 0;  ///< index of the transfer's train that is next on this uplink
        std::uint32_t count = 0;  ///< trains of the transfer
        std::uint64_t line = 0;   ///< line of the transfer's first train
        std::uint64_t group = 0;  ///< group of lines (Topology::uplink) that holds the train
        std::uint64_t end = 0;    ///< group behind the transfer's last
    };
    struct Queue {                   // the requests of a channel
        std::vector<Cursor*> peers;  ///< cursors of peers with requests
        std::size_t turn = 0;        ///< index of the peer whose turn is next
    };
    struct Link {
        std::vector<Queue> queues;                 ///< a queue for each channel
        std::unordered_map<Peer, Cursor> cursors;  ///< cursors of peers that have transfers
    };

    Ps run_uplink(Fabric& fabric, Uplinks& uplinks, Uplinks::Uplink& uplink, Ps until);
    void refill(Fabric& fabric, Uplinks& uplinks, Uplinks::Uplink& uplink, std::uint32_t channel);
    void open(Fabric& fabric, const Uplinks::Uplink& uplink, Cursor& cursor, TransferId id) const;
    bool settle(Fabric& fabric, const Uplinks::Uplink& uplink, Cursor& cursor) const;

    std::vector<Link> links_;                    ///< state of each uplink
    std::unordered_map<Peer, TransferId> last_;  ///< end of the list of each peer's transfers
};

/// Requests in one line: plain stores. The line's head moves on when its channel's staging buffer
/// has room, so a busy uplink holds up all others: head-of-line blocking. Each SM stores one row at
/// a time, so as many rows as there are SMs take turns in the line.
class SharedFifo {
  public:
    explicit SharedFifo(const Uplinks&) {}

    void post(Fabric& fabric, Uplinks& uplinks, TransferId id);
    Ps run(Fabric& fabric, Uplinks& uplinks, Ps until);
    static constexpr bool kEachByItself = true;  ///< each post is taken up as it comes

  private:
    void feed(Fabric& fabric, Uplinks& uplinks);
    bool next_lane(Fabric& fabric);

    TransferId head_ = kNoTransfer;  ///< first transfer that no lane has taken
    TransferId tail_ = kNoTransfer;
    std::vector<TransferId> lanes_;  ///< rows being stored, which take turns in the line
    std::size_t lane_ = 0;           ///< lane whose turn it is
    Ps departed_ = 0;                ///< when something last left and made room
};

/// MoE-Hub's Runtime Packet Manager at work: requests wait in a write buffer with a partition per
/// peer (rpm.hpp), from which a free channel takes the next line, peers in turn. A full partition
/// holds up its own peer alone.
class PacketManager {
  public:
    explicit PacketManager(const Uplinks& uplinks);

    void post(Fabric& fabric, Uplinks& uplinks, TransferId id);
    Ps run(Fabric& fabric, Uplinks& uplinks, Ps until);
    static constexpr bool kEachByItself = false;

    const RpmStats& stats() const { return stats_; }

  private:
    struct Partition {  // the write buffer of one peer
        Partition(GpuId of, std::int32_t entries, Ps timer) : peer(of), lines(entries, timer) {}
        GpuId peer;
        RpmPartition lines;
        TransferId head = kNoTransfer;  ///< first transfer not yet all in the partition
        TransferId tail = kNoTransfer;
        TransferId second = kNoTransfer;  ///< transfer behind the head, if there when that came up
        RpmLine next;                     ///< line of the head that enters as soon as there is room
        Ps ready = 0;                     ///< when the head reached the egress
        Bytes left = 0;                   ///< bytes of the head, from `next` on
        std::uint64_t number = 0;         ///< number of `next` among all lines (Topology::uplink)
        std::int64_t merged = 0;          ///< stores that `next` is made of, beyond one per packet
        Ps open = 0;                      ///< time from the first of a line's stores to the last
    };
    struct Peers {  // the peers of a channel
        std::vector<Partition*> partitions;
        std::size_t turn = 0;  ///< index of the peer whose turn is next
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

    std::vector<Link> links_;                             ///< state of each uplink
    std::vector<std::unique_ptr<Partition>> partitions_;  ///< each peer's partition
    Ps waits_ = kNever;                                   ///< earliest `waits` of the links
    RpmStats stats_;
};

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
    /// Counters of the RPM; null where there is none.
    const RpmStats* rpm_stats() const;

  private:
    using Requests = std::variant<PerPeerQueues, SharedFifo, PacketManager>;

    template <class Queue>
    Ps run_with(Queue& queue, Fabric& fabric, std::span<const Event> events, Ps until);

    Uplinks uplinks_;
    Requests requests_;
};

}  // namespace moehub::sim
