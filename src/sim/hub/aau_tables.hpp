/// The tables of an AAU: RAT, which remembers where rows went, and the pages that they lie in.
#pragma once
#include "base/rng.hpp"

#include <moehub/units.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace moehub::sim {

/// RAT, the Row Allocation Table: (region, RowID) → local row in banked SRAM of finite size, oldest
/// entry out first, bank by bank. What was evicted is kept in a table in device memory.
using RegionId = std::uint32_t;

struct RatSpec {
    int entries = 0;  ///< entries of all banks together, at least one; shared out evenly
    int banks = 1;    ///< at least one; no more are used than there are entries
};

/// A row of a region as one number.
constexpr std::uint64_t row_key(RegionId region, std::uint32_t row_id) {
    return std::uint64_t{region} << 32 | row_id;
}
constexpr RegionId region_of(std::uint64_t row_key) {
    return static_cast<RegionId>(row_key >> 32);
}

/// Row → local row, by open addressing: nothing is allocated but when it grows, with its use.
class RowMap {
  public:
    std::optional<std::uint32_t> find(std::uint64_t key) const {
        if (slots_.empty()) return std::nullopt;
        const Slot& slot = slots_[probe(key)];
        return slot.used ? std::optional(slot.local_row) : std::nullopt;
    }
    /// Throws std::logic_error when the row is there.
    void insert(std::uint64_t key, std::uint32_t local_row);
    std::optional<std::uint32_t> take(std::uint64_t key);
    std::size_t size() const { return size_; }

  private:
    struct Slot {
        std::uint64_t key = 0;
        std::uint32_t local_row = 0;
        bool used = false;
    };

    std::size_t home(std::uint64_t key) const { return mixed_bits(key) & (slots_.size() - 1); }
    std::size_t after(std::size_t at) const { return (at + 1) & (slots_.size() - 1); }
    /// Where the row is, or the free slot where it would be.
    std::size_t probe(std::uint64_t key) const {
        std::size_t at = home(key);
        while (slots_[at].used && slots_[at].key != key) at = after(at);
        return at;
    }
    void grow();

    std::vector<Slot> slots_;  ///< none, or a power of two of which some are free
    std::size_t size_ = 0;
};

class Rat {
  public:
    explicit Rat(const RatSpec& spec);

    std::uint32_t banks() const { return static_cast<std::uint32_t>(banks_.size()); }
    std::uint32_t bank(RegionId region, std::uint32_t row_id) const {
        return static_cast<std::uint32_t>(
            (mixed_bits(row_key(region, row_id)) >> 32) * banks_.size() >> 32);  // the high bits
    }
    std::optional<std::uint32_t> find(RegionId region, std::uint32_t row_id) const {
        return held_.find(row_key(region, row_id));
    }
    /// The entry must not be there. Returns whether another was evicted to make room, and which
    /// region it belonged to.
    struct Inserted {
        bool evicted = false;
        RegionId victim_region = 0;
    };
    Inserted insert(RegionId region, std::uint32_t row_id, std::uint32_t local_row);
    /// Takes an evicted entry out of device memory.
    std::optional<std::uint32_t> take_spilled(RegionId region, std::uint32_t row_id);

    std::size_t held() const { return held_.size(); }        ///< entries in the banks
    std::size_t spilled() const { return spilled_.size(); }  ///< entries in device memory

  private:
    struct Bank {
        std::size_t entries = 0;
        std::size_t oldest = 0;  ///< index of the oldest in `rows`, once they fill the bank
        std::vector<std::uint64_t> rows;  ///< ring, in order of insertion; grows up to `entries`
    };

    RowMap held_;  ///< rows in all banks: which one holds a row follows from the row
    std::vector<Bank> banks_;
    RowMap spilled_;
};

/// Where regions lie in device memory. A region is given its whole worst case at once, or
/// fixed-size pages on demand from a pool that all regions of the GPU share. Addresses are the
/// GPU's own; no two pieces overlap, and each begins at a multiple of 128 B.
struct RegionSpec {
    std::string name;       ///< name in errors: "expert 3 on gpu 1"
    std::int64_t rows = 0;  ///< most rows of the region
    Bytes row_bytes = 0;
    std::uint32_t page_rows = 0;  ///< 0: one piece of `rows` rows
};

/// Rows of a region that lie one behind the other: a page, or the whole of a region in one piece.
struct Page {
    std::uint64_t begin = 0;
    std::uint32_t first_row = 0;
    std::uint32_t rows = 0;  ///< rows that the region may use: the last page may have more room
};

class PagedMemory {
  public:
    /// `pool_bytes`: what all paged regions may take together; 0: no limit.
    explicit PagedMemory(Bytes pool_bytes = 0) : pool_(pool_bytes) {}

    /// Regions are numbered from 0 on. One in one piece is given it now. Throws InputError when the
    /// sizes are out of bounds: none is added.
    RegionId add_region(const RegionSpec& spec);
    /// The address of a row, which gets its page when it is the first row in it. Throws InputError
    /// when the row lies beyond the region or the pool is used up, naming region and sizes; nothing
    /// is handed out.
    std::uint64_t address(RegionId region, std::uint32_t local_row);
    /// The page of a row, which must have been handed out (std::logic_error).
    Page page(RegionId region, std::uint32_t local_row) const;

    const RegionSpec& spec(RegionId region) const { return regions_[region].spec; }
    std::size_t regions() const { return regions_.size(); }
    /// Bytes of pieces given at once and of pages handed out; pages count whole, the last too.
    Bytes reserved() const { return pieces_ + paged_; }
    Bytes worst_case() const { return worst_case_; }  ///< rows · row_bytes over all regions
    /// Sets the limit for the pages still to come; 0: no limit.
    void set_pool(Bytes bytes) { pool_ = bytes; }

  private:
    struct Region {
        RegionSpec spec;
        std::uint32_t rows_per_page = 0;    ///< rows of a page; of a region in one piece: all
        std::vector<std::uint64_t> begins;  ///< addresses of the pages; kNone: not handed out
    };
    static constexpr std::uint64_t kNone = 0;

    std::uint64_t hand_out(Region& region, std::uint32_t page);
    std::uint64_t cut(Bytes bytes);

    std::vector<Region> regions_;
    std::uint64_t next_ = 128;  ///< not 0, which is no address
    Bytes pool_ = 0;
    Bytes pieces_ = 0;
    Bytes paged_ = 0;
    Bytes worst_case_ = 0;
};

}  // namespace moehub::sim
