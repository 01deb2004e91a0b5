/// Where a row goes: which copy of its destination, and which place in that one's memory.
#pragma once
#include "sim/hub/aau_tables.hpp"

#include <moehub/layer_options.hpp>
#include <moehub/units.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace moehub::sim {

/// One logical destination, several endpoints: the producer's side of the APT's one-to-many
/// extension. The endpoint is chosen once per row, so all its packets agree.
class ReplicaTable {
  public:
    /// `origin`: the producer's number.
    explicit ReplicaTable(ReplicaPolicy policy, std::uint32_t origin = 0)
        : policy_(policy), origin_(origin) {}

    /// Returns the logical destination's number. `endpoints`: numbers of the caller's, at least one
    /// (std::logic_error). An endpoint may serve several destinations.
    std::uint32_t add(std::span<const std::uint32_t> endpoints);
    /// The endpoint for the next row to this destination. Round robin starts at `destination` plus
    /// `origin`, mod its endpoints, so that producers do not all begin with the same one; least
    /// loaded takes the endpoint with the fewest rows sent from here, and of equals the one
    /// whose turn comes first.
    std::uint32_t choose(std::uint32_t destination);
    std::int64_t sent(std::uint32_t endpoint) const;  ///< rows that were to go to the endpoint

  private:
    struct Endpoint {
        std::uint32_t number = 0;
        std::int64_t sent = 0;
    };
    struct Destination {
        std::vector<std::size_t> endpoints;  ///< indices in endpoints_
        std::size_t turn = 0;                ///< index of the endpoint whose turn is next
    };

    std::size_t least_loaded(const Destination& destination) const;

    ReplicaPolicy policy_;
    std::uint32_t origin_;
    std::vector<Endpoint> endpoints_;
    std::unordered_map<std::uint32_t, std::size_t> index_;  ///< endpoint's number → endpoints_
    std::vector<Destination> destinations_;
};

/// AAU, the Address Allocation Unit of a consumer's hub: gives every row that arrives for a region
/// the next free row of it. Rows are packed densely in the order in which their first packets
/// arrive, with no word from the producers:
///     address = base + local row · row size + offset            (MoE-Hub, arXiv 2605.05888)
///
/// RAT (aau_tables.hpp) remembers (region, RowID) → local row; APT counts each region's rows. The
/// RAT is finite: what falls out is written to device memory and read back by a late packet.
/// Whether a row was ever allocated is told by one bit per row in device memory, which is read on a
/// miss of a region that has ever lost an entry. The bit lies with the entry: one read gives both,
/// takes AauSpec::restore, and moves AauSpec::entry bytes. It does not hold up the bank, but
/// packets of the row that come meanwhile wait for it.

/// A train counts as its packets: the first of a row that is not in the RAT is a miss, all others
/// are hits.
struct AauStats {
    std::int64_t lookups = 0;    ///< packets
    std::int64_t hits = 0;       ///< found in the RAT
    std::int64_t allocated = 0;  ///< rows
    std::int64_t evictions = 0;  ///< entries written to device memory
    std::int64_t restores = 0;   ///< entries read back
    Bytes spill_bytes = 0;       ///< bytes of spills both ways; one entry per eviction and per read
    Ps bank_wait = 0;  ///< wait for a bank of the RAT, summed over packets; a train waits once
};

struct AauSpec {
    RatSpec rat;
    Ps lookup = 0;    ///< time that a packet occupies a bank of the RAT
    Ps restore = 0;   ///< time to read one entry or bit from device memory
    Bytes entry = 8;  ///< bytes of a RAT entry in device memory
    /// DySHARP's AL table: all entries lie in device memory, written when they are made, and what
    /// is on chip is a TLB in front of it. Every miss reads; what falls out costs nothing. Every
    /// new row misses, so that packets which wait for a read must not stop those behind: they stand
    /// aside, while no more than `reads` are underway.
    bool in_memory = false;
    int reads = 64;  ///< most reads underway at a time, where entries lie in memory
};

class Aau {
  public:
    explicit Aau(const AauSpec& spec);

    /// A region of at most `rows` rows. Named in errors. One in one piece has its address from now
    /// on (memory().page(region, 0)).
    RegionId add_region(const RegionSpec& spec);

    struct Located {
        std::uint64_t address = 0;  ///< address of the packet's first byte
        std::uint32_t local_row = 0;
        bool first = false;  ///< the packet is the first of its row
        /// The row is the first in a page, which was handed out now. A region in one piece is one
        /// page, though its address is known before.
        bool new_page = false;
        std::uint64_t page_begin = 0;      ///< address of the page; set with new_page alone
        std::uint32_t page_first_row = 0;  ///< first local row of the page; set with new_page alone
        std::uint32_t page_rows = 0;  ///< rows that the region may use; set with new_page alone
        Ps ready = 0;                 ///< when the address is known, not before the arrival
        Ps passed = 0;                ///< when the packet no longer stops those behind it
    };
    /// A packet, or the last of a train of `packets` packets of one row, arrives. The train's
    /// others came before, a lookup apart or more; it is ready when the bank has looked up all of
    /// them. Throws InputError when the region is full or the pool of pages used up: nothing is
    /// written, nothing has changed.
    Located locate(RegionId region, std::uint32_t row_id, Bytes offset, std::uint32_t packets,
                   Ps now);

    std::uint32_t rows(RegionId region) const {  ///< allocated so far: the APT's pointer
        return apt_[region].next;
    }
    const PagedMemory& memory() const { return memory_; }
    PagedMemory& memory() { return memory_; }
    const AauStats& stats() const { return stats_; }

  private:
    struct Pointer {  // APT entry
        std::uint32_t next = 0;
        bool spilled = false;  ///< has ever lost an entry
    };

    void allocate(RegionId region, Located& located);
    void enter(RegionId region, std::uint32_t row_id, std::uint32_t local_row);
    Ps occupy_bank(RegionId region, std::uint32_t row_id, std::uint32_t packets, Ps now);
    Ps read(std::uint64_t row, Ps start);
    Ps free_read(Ps time);
    Ps read_until(std::uint64_t row, Ps time);

    AauSpec spec_;
    PagedMemory memory_;
    Rat rat_;
    std::vector<Pointer> apt_;
    std::vector<Ps> bank_free_;
    std::unordered_map<std::uint64_t, Ps> reads_;  ///< until when each row's entry is being read
    std::vector<Ps> read_slots_;  ///< until when each slot is taken; slots take turns
    std::size_t next_slot_ = 0;
    Ps last_read_ = 0;           ///< when all reads will have ended
    std::size_t prune_at_ = 64;  ///< size of reads_ at which those that ended are dropped
    AauStats stats_;
};

}  // namespace moehub::sim
