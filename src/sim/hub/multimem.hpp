/// What a hub has for instructions with a list of targets (DySHARP): OR table and MultimemQ.
#pragma once
#include <moehub/machine.hpp>
#include <moehub/units.hpp>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>

namespace moehub::sim {

struct OrStats {
    std::int64_t updates = 0;
    std::int64_t ready = 0;     ///< tokens that are ready
    std::int64_t restored = 0;  ///< counts read back from memory
};

/// OR table, in the hub of the GPU that collects a token's results: counts the experts that are
/// through with it; when all are, its results can be loaded. The table is finite: the oldest count
/// goes to device memory and is read back when it is wanted.
class OrTable {
  public:
    /// `entries`: how many counts it holds, at least one; reading one back takes `restore`.
    OrTable(int entries, Ps restore) : entries_(entries), restore_(restore) {}

    /// Expects `experts` to be through with a token. A token that is not expected, or comes more
    /// often, is a defect (std::logic_error).
    void expect(std::uint32_t token, std::uint32_t experts);
    /// One of its experts is through with a token, at `now`; returns when it is ready, if it is.
    std::optional<Ps> add(std::uint32_t token, Ps now);

    const OrStats& stats() const { return stats_; }

  private:
    struct Count {
        std::uint32_t missing = 0;
        Ps latest = 0;
        bool held = false;
        bool spilled = false;  ///< the count lies in memory
    };
    Ps hold(std::uint32_t token, Count& count, Ps now);

    int entries_;
    Ps restore_;
    std::unordered_map<std::uint32_t, Count> counts_;
    std::deque<std::uint32_t> held_;  ///< tokens with counts, oldest first; some are ready
    int used_ = 0;                    ///< entries in use
    OrStats stats_;
};

/// MultimemQ, beside a GPU's load/store queue: an instruction with a list of targets
/// stays in one of its entries until the list has been fetched, so that
///     instructions per second = entries / time of a fetch.
class MultimemQueue {
  public:
    /// Passes the instructions of one row, at `now`; returns when the last one's list is there.
    Ps pass(const DysharpSpec& spec, std::int64_t instructions, Ps now) {
        const Ps rounds = (instructions - 1) / spec.multimem_entries;
        const Ps start = std::max(now, free_at_);
        free_at_ = start + instructions * spec.list_fetch / spec.multimem_entries;
        return start + (rounds + 1) * spec.list_fetch;
    }

  private:
    Ps free_at_ = 0;
};

}  // namespace moehub::sim
