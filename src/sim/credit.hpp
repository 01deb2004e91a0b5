/// Credits of one buffer, kept by the component that sends into it. Credits come back in updates,
/// one per 16 ns: what leaves the buffer meanwhile counts from the next update on.
#pragma once
#include "sim/event.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <vector>

namespace moehub::sim {

inline constexpr int kCreditUpdateShift = 14;
inline constexpr Ps kCreditUpdate = Ps{1} << kCreditUpdateShift;  ///< between two updates

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
    std::vector<std::int32_t> updates_;  ///< ring, by update
    std::vector<Far> far_;               ///< beyond the ring, ordered
};

}  // namespace moehub::sim
