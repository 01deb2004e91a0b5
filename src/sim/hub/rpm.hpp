/// RPM, the Runtime Packet Manager of a producer's hub: a write buffer in front of the uplinks,
/// with a partition per peer. Stores to the same line merge towards full packets: those of one
/// transfer, which follow one another, enter as one line (PacketManager). A partition gives out,
/// for an uplink:
///   1. high priority before low (`.nop`),
///   2. lines whose mask is full, or whose timer has run out, before those that may still grow,
///      which do not go at all,
///   3. the smallest RowID, then the lowest line.
/// A full partition takes no new line: the store waits with its producer (back-pressure). Peers
/// take turns; that is the egress's business, since it knows who has credit.
#pragma once
#include "sim/event.hpp"
#include "sim/queues.hpp"

#include <moehub/units.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace moehub::sim {

/// What an RPM has handled; a train counts as its packets everywhere.
struct RpmStats {
    std::int64_t stores = 0;     ///< stores taken in
    std::int64_t merged = 0;     ///< stores taken into a line that was there
    std::int64_t packets = 0;    ///< packets given out
    std::int64_t full = 0;       ///< packets given out with a full mask
    std::int64_t timed_out = 0;  ///< packets given out by the timer with a mask not full
    std::int64_t deepest = 0;    ///< most lines at once in a partition
};

/// One line of a row on its way: what a packet will carry, or a train of packets in row grain.
struct RpmLine {
    TransferId transfer = 0;
    std::uint32_t index = 0;    ///< which train of the transfer
    std::uint32_t row_id = 0;   ///< smaller goes first
    std::uint32_t bytes = 0;    ///< bytes valid so far
    std::uint32_t whole = 0;    ///< bytes when full
    std::uint16_t packets = 1;  ///< packets that it takes room for
    std::uint8_t plane = 0;     ///< uplink that it will take
    bool low_priority = false;
    EventKind kind = EventKind::store;
    bool multicast = false;
    std::uint16_t more = 0;  ///< flits of each packet, beyond its header
    Ps since = 0;            ///< time of the first store
    Ps last = 0;             ///< time of the latest store: the line cannot leave before
};

class RpmPartition {
  public:
    /// `entries`: packets' lines that there is room for; a train enters when its first packet fits.
    RpmPartition(std::int32_t entries, Ps timer) : entries_(entries), timer_(timer) {}

    bool fits() const { return used_ < entries_; }
    /// Takes in a line that is not there yet. The partition must fit it (std::logic_error).
    void add(const RpmLine& line, RpmStats& stats);

    /// The line to leave next on the uplink, and from when on it may; nothing if none is there. Of
    /// the lines that may leave at `now` it is the first by the order above; if none may, the one
    /// that may soonest. A full line may leave at its `last`, one that may still grow at
    /// since + timer, or its `last` if that is later. `now`, when the uplink could begin, should
    /// not go back from call to call: what was allowed to leave before stays ahead of what was
    /// not. The slot is valid until the next store or take.
    struct Choice {
        std::size_t slot = 0;
        Ps from = 0;
    };
    std::optional<Choice> choose(std::uint8_t plane, Ps now) const;
    RpmLine take(std::size_t slot, RpmStats& stats);

    std::int32_t used() const { return used_; }  ///< packets' lines in use

  private:
    struct Held {
        RpmLine line;
        Ps from = 0;  ///< when the line may leave
    };
    struct Precedence {  // among lines of one priority
        bool operator()(const Held& a, const Held& b) const {
            if (a.line.row_id != b.line.row_id) return a.line.row_id < b.line.row_id;
            if (a.line.index != b.line.index) return a.line.index < b.line.index;
            return a.line.transfer < b.line.transfer;
        }
    };
    struct Sooner {
        bool operator()(const Held& a, const Held& b) const {
            if (a.from != b.from) return a.from < b.from;
            if (a.line.low_priority != b.line.low_priority) return b.line.low_priority;
            return Precedence()(a, b);
        }
    };
    struct Plane {
        NearlySorted<Held, Precedence> due[2];  ///< lines that may leave, of high and low priority
        NearlySorted<Held, Sooner> waiting;     ///< lines that may leave later
        Ps soonest = kNever;                    ///< when the first of `waiting` may leave

        void look_ahead() { soonest = waiting.empty() ? kNever : waiting.front().from; }
    };
    /// The front of a queue: of a plane's `due`, or its `waiting`.
    static constexpr std::size_t kQueues = 3;
    static constexpr std::size_t kWaiting = 2;

    const Held& front(std::size_t slot) const;
    void queue(const RpmLine& line) const;

    std::int32_t entries_;
    std::int32_t used_ = 0;
    Ps timer_;
    // The queue that a line lies in follows from `now` and is no part of what the partition holds.
    mutable Ps now_ = 0;  ///< latest asked for: what may leave by then is in `due` once asked for
    mutable std::vector<Plane> planes_;
};

}  // namespace moehub::sim
