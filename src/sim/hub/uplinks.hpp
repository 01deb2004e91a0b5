/// A GPU's uplinks: one to each switch (in a mesh to each peer), and the NIC. Each has virtual
/// channels, responses and requests by destination, in which trains are staged ahead of the wire;
/// the channels take turns.
#pragma once
#include "sim/event.hpp"
#include "sim/queues.hpp"
#include "sim/time_bins.hpp"
#include "sim/wire.hpp"

#include <span>
#include <vector>

namespace moehub::sim {

class Fabric;
class Recorder;

class Uplinks {
  public:
    Uplinks(Fabric& fabric, GpuId gpu);

    struct Channel {
        Ring<Staged> trains;       ///< ready for the wire, oldest first
        std::int64_t packets = 0;  ///< of requests in trains
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

}  // namespace moehub::sim
