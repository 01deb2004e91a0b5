/// OR table (DySHARP), in the hub of the GPU that collects a token's results: counts the experts
/// that are through with it; when all are, its results can be loaded. The table is finite: the
/// oldest count goes to device memory and is read back when it is wanted.
#pragma once
#include <moehub/units.hpp>

#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>

namespace moehub::sim {

struct OrStats {
    std::int64_t updates = 0;
    std::int64_t ready = 0;     ///< tokens
    std::int64_t restored = 0;  ///< counts read back from memory
};

class OrTable {
  public:
    /// Holds so many counts, at least one; reading one back takes `restore`.
    OrTable(int entries, Ps restore) : entries_(entries), restore_(restore) {}

    /// So many experts will be through with a token. One that is not expected, or comes more often,
    /// is a defect (std::logic_error).
    void expect(std::uint32_t token, std::uint32_t experts);
    /// One of them is, at `now`; returns when the token is known to be ready, if it is.
    std::optional<Ps> add(std::uint32_t token, Ps now);

    const OrStats& stats() const { return stats_; }

  private:
    struct Count {
        std::uint32_t missing = 0;
        Ps latest = 0;
        bool held = false;
        bool spilled = false;  ///< lies in memory
    };
    Ps hold(std::uint32_t token, Count& count, Ps now);

    int entries_;
    Ps restore_;
    std::unordered_map<std::uint32_t, Count> counts_;
    std::deque<std::uint32_t> held_;  ///< tokens, the oldest first; some are ready since
    int used_ = 0;                    ///< entries
    OrStats stats_;
};

}  // namespace moehub::sim
