/// Where regions lie in device memory. A region is given its whole worst case at once, or
/// fixed-size pages on demand from a pool that all regions of the GPU share. Addresses are the
/// GPU's own; no two pieces overlap, and each begins at a multiple of 128 B.
#pragma once
#include <moehub/units.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace moehub::sim {

using RegionId = std::uint32_t;

struct RegionSpec {
    std::string name;       ///< for errors: "expert 3 on gpu 1"
    std::int64_t rows = 0;  ///< at most
    Bytes row_bytes = 0;
    std::uint32_t page_rows = 0;  ///< 0: one piece of `rows` rows
};

/// Rows of a region that lie one behind the other: a page, or the whole of a region in one piece.
struct Page {
    std::uint64_t begin = 0;
    std::uint32_t first_row = 0;
    std::uint32_t rows = 0;  ///< that the region may use of it: the last page may have more room
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
    /// Pieces given at once and pages handed out. Pages count whole, the last of a region too.
    Bytes reserved() const { return pieces_ + paged_; }
    Bytes worst_case() const { return worst_case_; }  ///< rows · row_bytes over all regions
    /// For the pages still to come; 0: no limit.
    void set_pool(Bytes bytes) { pool_ = bytes; }

  private:
    struct Region {
        RegionSpec spec;
        std::uint32_t rows_per_page = 0;    ///< of one piece: all
        std::vector<std::uint64_t> begins;  ///< of pages; kNone: not handed out
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
