/// RPM, the Runtime Packet Manager of a producer's hub: a write buffer in front of the uplinks,
/// with a fully associative partition per peer. Stores to the same line merge by validity mask,
/// towards full packets. A partition gives out, for an uplink:
///   1. high priority before low (`.nop`),
///   2. lines whose mask is full, or whose timer has run out, before those that may still grow,
///      which do not go at all,
///   3. the smallest RowID, then the lowest line.
/// A full partition takes no new line: the store waits with its producer (back-pressure). Peers
/// take turns; that is the egress's business, since it knows who has credit.
#pragma once
#include "sim/event.hpp"

#include <moehub/units.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace moehub::sim {

/// A train counts as its packets, in all of them.
struct RpmStats {
    std::int64_t stores = 0;     ///< taken in
    std::int64_t merged = 0;     ///< of those, into a line that was there
    std::int64_t packets = 0;    ///< given out
    std::int64_t full = 0;       ///< of those, with a full mask
    std::int64_t timed_out = 0;  ///< of those, by the timer with a mask not full
    std::int64_t deepest = 0;    ///< lines in a partition
};

/// One line of a row on its way: what a packet will carry, or a train of packets in row grain.
struct RpmLine {
    TransferId transfer = 0;
    std::uint32_t index = 0;    ///< which unit of the transfer
    std::uint32_t row_id = 0;   ///< smaller goes first
    std::uint32_t bytes = 0;    ///< valid so far
    std::uint32_t whole = 0;    ///< when full
    std::uint16_t packets = 1;  ///< room it takes
    std::uint8_t plane = 0;     ///< uplink it will take
    bool low_priority = false;
    Ps since = 0;  ///< first store
    Ps last = 0;   ///< latest store: it cannot leave before
};

class RpmPartition {
  public:
    /// Room for so many packets' lines; a line larger than that (a train) is taken by an empty
    /// partition.
    RpmPartition(std::int32_t entries, Ps timer) : entries_(entries), timer_(timer) {}

    bool fits(std::uint32_t packets) const { return used_ == 0 || packets <= room(); }
    bool holds(TransferId transfer, std::uint32_t index, bool low_priority = false) const {
        return find(transfer, index, low_priority) != kNoSlot;
    }
    /// A store of `bytes` more of line (transfer, index), merged where the line is there with the
    /// same priority. The partition must fit it, unless it merges (see `holds`), and a line gets
    /// each of its bytes once (std::logic_error).
    void store(const RpmLine& line, RpmStats& stats);

    /// The line to leave next on the uplink, and from when on it may; nothing if none is there. Of
    /// the lines that may leave at `now` it is the first by the order above; if none may, the one
    /// that may soonest. A full line may leave at its `last`, one that may still grow at
    /// since + timer, or its `last` if that is later. `now`, when the uplink could begin, should
    /// not go back from call to call of one plane: what was allowed to leave before stays ahead of
    /// what was not. The slot is valid until the next store or take.
    struct Choice {
        std::size_t slot = 0;
        Ps from = 0;
    };
    std::optional<Choice> choose(std::uint8_t plane, Ps now) const;
    const RpmLine& line(std::size_t slot) const { return slots_[slot].line; }
    RpmLine take(std::size_t slot, RpmStats& stats);

    std::int32_t used() const { return used_; }  ///< packets
    bool empty() const { return used_ == 0; }

  private:
    static constexpr std::uint32_t kNoSlot = 0xffff'ffff;

    struct Slot {
        RpmLine line;
        std::uint32_t next = kNoSlot;  ///< of its bucket, or of the free slots
        std::uint32_t place = 0;       ///< in its heap
        bool due = false;              ///< lies in `due`, not in `waiting`
    };
    struct Node {
        Ps from = 0;              ///< 0 in `due`
        std::uint64_t major = 0;  ///< priority, RowID
        std::uint64_t minor = 0;  ///< line, transfer
        std::uint32_t slot = 0;
    };
    using Heap = std::vector<Node>;  ///< binary; slots know their places, so any may leave
    struct Plane {
        Heap due;      ///< lines that may leave, by precedence
        Heap waiting;  ///< lines that may leave later, by when, then by precedence
        Ps now = 0;    ///< latest asked for: what may leave by then is in `due`
    };

    std::uint32_t room() const {
        return used_ < entries_ ? static_cast<std::uint32_t>(entries_ - used_) : 0;
    }
    Ps may_leave(const RpmLine& line) const;

    std::uint32_t find(TransferId transfer, std::uint32_t index, bool low_priority) const;
    std::uint32_t& bucket(TransferId transfer, std::uint32_t index);
    void insert(const RpmLine& line);
    void rehash();

    void schedule(Plane& plane, std::uint32_t slot) const;
    void unschedule(Plane& plane, std::uint32_t slot) const;
    void push(Heap& heap, const Node& node) const;
    void pop(Heap& heap, std::size_t place) const;
    void settle(Heap& heap, std::size_t place, const Node& node) const;

    std::int32_t entries_;
    std::int32_t used_ = 0;
    std::uint32_t lines_ = 0;
    std::uint32_t free_ = kNoSlot;
    Ps timer_;
    std::vector<std::uint32_t> buckets_;  ///< by hash of (transfer, index): first slot
    // In which heap a line lies follows from `now` and is no part of what the partition holds.
    mutable std::vector<Slot> slots_;
    mutable std::vector<Plane> planes_;
};

}  // namespace moehub::sim
