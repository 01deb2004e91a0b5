/// A link as the simulator uses it: its exact flit counts and picoseconds, and the credits of the
/// buffer at its end.
#pragma once
#include "sim/event.hpp"

#include <moehub/machine.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace moehub::sim {

/// A link's numbers as the simulator uses them: exact flit counts and picoseconds.
struct Wire {
    std::uint64_t flit_time = 0;  ///< picoseconds in 48.16 fixed point
    Ps latency = 0;
    Bytes flit = 16;
    Bytes payload = 128;  ///< payload bytes of a full packet
    std::uint32_t header_flits = 1;
    std::uint32_t ack_flits = 1;
    std::uint32_t multicast_flits = 1;
    std::uint32_t full_packet_flits = 9;
    std::int64_t buffer_flits = 0;  ///< per virtual channel, credit round trip included

    Wire() = default;
    /// `share`: how many parallel links divide the bandwidth; `folded`: how many of them this one
    /// wire stands for (row grain folds all planes into one).
    Wire(const LinkSpec& spec, double share, std::uint32_t folded);

    Bytes largest_train = 0;  ///< payload of the longest train whose flits can be counted
    std::uint32_t fold = 1;   ///< parallel links this one stands for

    Ps serialise(std::uint64_t flits) const {
        return static_cast<Ps>((flits * flit_time + 0x8000) >> 16);
    }
    /// A packet takes one of the folded links, so its own time on the wire is longer than its
    /// share of the whole: by this much.
    Ps lane_extra(std::uint64_t packet_flits) const { return (fold - 1) * serialise(packet_flits); }
    std::uint16_t packets(Bytes bytes) const {
        if (bytes == payload) return 1;
        return static_cast<std::uint16_t>((bytes + payload - 1) / payload);
    }
    /// Flits of a train of `packets` packets that carries (or, for a load, asks for) `bytes`;
    /// `more`: of each packet, beyond its header.
    std::uint16_t flits(EventKind kind, Bytes bytes, std::uint32_t packets,
                        std::uint32_t more) const {
        if (kind == EventKind::ack) return static_cast<std::uint16_t>(packets * ack_flits);
        const std::uint32_t header = packets * (header_flits + more);
        // Where packets have no headers, a request is still something: a flit.
        if (kind == EventKind::load || kind == EventKind::meet) {
            return static_cast<std::uint16_t>(header > 0 ? header : 1);
        }
        // All packets but the last are full, and a full one is whole flits.
        return static_cast<std::uint16_t>(header + (bytes + flit - 1) / flit);
    }
};

/// Credits of one buffer, kept by the component that sends into it. Credits come back in updates,
/// one per 16 ns: what leaves the buffer meanwhile counts from the next update on.

inline constexpr int kCreditUpdateShift = 14;
inline constexpr Ps kCreditUpdate = Ps{1} << kCreditUpdateShift;  ///< time between two updates

class CreditPool {
  public:
    CreditPool(std::int64_t flits, ComponentId owner, Ps latency)
        : credits_(flits), latency_(latency), owner_(owner) {
        // What leaves one window ahead is known one latency after that: twice that is ample, and
        // what lies further (a train's departure, a very long link) waits in far_.
        const Ps updates = std::min<Ps>((2 * latency >> kCreditUpdateShift) + 4, kMostUpdates);
        updates_.resize(std::bit_ceil(static_cast<std::uint64_t>(updates)));
    }

    ComponentId owner() const { return owner_; }
    /// True while the owner has been refused and must be woken by the next return.
    bool wanted() const { return wanted_; }

    /// Flits left the buffer at `left`; returns when the owner can use them.
    Ps give(Ps left, std::int64_t flits) {
        const std::int64_t update = ((left + latency_) >> kCreditUpdateShift) + 1;
        if (update <= absorbed_) {  // the owner's link is busy until after this update
            credits_ += flits;
        } else if (update - absorbed_ < static_cast<std::int64_t>(updates_.size())) {
            slot(update) += static_cast<std::int32_t>(flits);
            pending_ += flits;
        } else {
            give_far(update, flits);
        }
        return update << kCreditUpdateShift;
    }

    /// When `need` flits are free, at `now` or later; kNever if no known return suffices. `now` may
    /// lie ahead, but must not go back: nothing starts before it.
    Ps ready(std::int64_t need, Ps now) {
        absorb(now >> kCreditUpdateShift);
        wanted_ = credits_ < need;
        return wanted_ ? later(need) : now;
    }

    /// May leave the balance negative: a train starts once its first packet has credit.
    void take(std::int64_t flits) { credits_ -= flits; }

  private:
    static constexpr Ps kMostUpdates = 4096;

    struct Far {
        std::int64_t update;
        std::int64_t flits;
    };

    std::int32_t& slot(std::int64_t update) {
        return updates_[static_cast<std::size_t>(update) & (updates_.size() - 1)];
    }

    void absorb(std::int64_t update) {
        if (absorbed_ >= update) return;
        while (pending_ != 0 && absorbed_ < update) {
            std::int32_t& flits = slot(++absorbed_);
            credits_ += flits;
            pending_ -= flits;
            flits = 0;
        }
        absorbed_ = update;
        if (!far_.empty()) absorb_far();
    }

    void give_far(std::int64_t update, std::int64_t flits) {
        const auto after = std::upper_bound(
            far_.begin(), far_.end(), update,
            [](std::int64_t value, const Far& entry) { return value < entry.update; });
        far_.insert(after, {update, flits});
    }

    void absorb_far() {
        auto due = far_.begin();
        for (; due != far_.end() && due->update <= absorbed_; ++due) credits_ += due->flits;
        far_.erase(far_.begin(), due);
    }

    Ps later(std::int64_t need) {
        std::int64_t sum = credits_;
        std::int64_t left = pending_;
        auto far = far_.begin();
        for (std::int64_t update = absorbed_ + 1; left != 0 || far != far_.end(); ++update) {
            if (left == 0) update = std::max(update, far->update);
            if (left != 0) {
                sum += slot(update);
                left -= slot(update);
            }
            for (; far != far_.end() && far->update == update; ++far) sum += far->flits;
            if (sum >= need) return update << kCreditUpdateShift;
        }
        return kNever;
    }

    std::int64_t credits_;
    std::int64_t absorbed_ = 0;  ///< updates up to this one are in credits_
    std::int64_t pending_ = 0;   ///< flits in updates_
    Ps latency_;
    ComponentId owner_;
    bool wanted_ = false;
    std::vector<std::int32_t> updates_;  ///< credits that come back, a ring by update
    std::vector<Far> far_;               ///< credits that come back beyond the ring, ordered
};

inline Wire::Wire(const LinkSpec& spec, double share, std::uint32_t folded)
    : latency(spec.latency),
      flit(spec.flit),
      payload(spec.payload),
      header_flits(static_cast<std::uint32_t>(spec.header_flits)),
      ack_flits(static_cast<std::uint32_t>(spec.ack_flits)),
      multicast_flits(static_cast<std::uint32_t>(spec.multicast_flits)),
      fold(folded) {
    // Credit updates take their share of every link.
    const double lane_flit_ps = static_cast<double>(flit) * share / spec.bandwidth * 1e12;
    const double updates = std::min(0.1, spec.credit_flits * lane_flit_ps / kCreditUpdate);
    const double flit_ps = lane_flit_ps / folded / (1.0 - updates);
    flit_time = static_cast<std::uint64_t>(std::llround(flit_ps * 65536.0));
    if (flit_time == 0) flit_time = 1;
    full_packet_flits = flits(EventKind::store, payload, 1, 0);
    const std::uint32_t longest = std::max(full_packet_flits + multicast_flits, ack_flits);
    largest_train = 65535 / std::max(longest, 1u) * payload;
    // A buffer holds what a full-rate sender has in flight until the first credit is back.
    const double round_trip = static_cast<double>(2 * latency) / flit_ps + 2.0 * full_packet_flits;
    buffer_flits = static_cast<std::int64_t>(std::ceil(round_trip)) +
                   static_cast<std::int64_t>(spec.buffer_flits) * folded;
}

}  // namespace moehub::sim
