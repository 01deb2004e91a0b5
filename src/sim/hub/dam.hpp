/// DAM, the Data Availability Manager of a consumer's hub: counts write acknowledgements by address
/// range and tells the thread-block scheduler which blocks have all their rows.
///
/// Dependency table: a range of addresses → a run of thread-block groups of equal size in it
/// (a row block of a region: tile rows · row bytes). Only the first `data_bytes` of each row count:
/// what lies behind (the source column, sent with low priority) no block of the first GEMM reads.
#pragma once
#include <moehub/units.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

namespace moehub::sim {

using BlockGroup = std::uint32_t;

struct DamStats {
    std::int64_t updates = 0;      ///< acknowledgements that brought data of some group
    std::int64_t ready = 0;        ///< groups that reached their threshold
    std::int64_t released = 0;     ///< groups partly filled, released by AllReady
    std::int64_t deallocated = 0;  ///< groups never filled
    std::int64_t entries = 0;      ///< ranges in the dependency table
    std::int64_t restored = 0;     ///< counters that had to be read from memory
};

struct DamSpec {
    int counters = 256;  ///< counters that the DAM holds; the oldest goes to memory
    Ps restore = 0;      ///< time to read one counter from memory
};

class Dam {
  public:
    Dam() = default;
    explicit Dam(const DamSpec& spec) : spec_(spec) {}

    /// Rows [begin, begin + rows · row_bytes) belong to groups of `group_rows` rows each, the last
    /// perhaps fewer; their numbers follow one another from the returned one on. Ranges must not
    /// overlap (std::logic_error). A group has all its data at rows in it · data_bytes.
    struct Range {
        std::uint64_t begin = 0;
        std::uint32_t rows = 0;
        std::uint32_t group_rows = 0;
        Bytes row_bytes = 0;
        Bytes data_bytes = 0;  ///< 1 to row_bytes
    };
    BlockGroup add(const Range& range);

    struct Ready {
        BlockGroup group = 0;
        Ps time = 0;  ///< when the last of the group's bytes was acknowledged
    };
    /// `bytes` at `address`, within one row, are in memory at `visible`; counts as `packets`
    /// acknowledgements. Returns the group that has all its data now. An address in no range is
    /// ignored. Order of calls need not be that of `visible`. Throws std::logic_error when a group
    /// gets more than its data, or data after AllReady: something came twice.
    std::optional<Ready> acknowledged(std::uint64_t address, Bytes bytes, std::uint32_t packets,
                                      Ps visible);

    /// A group will get no more than this much data; returns it when it has all of it already.
    std::optional<Ready> expect(BlockGroup group, Bytes data);

    /// AllReady: everything has arrived. Groups that have some data but not all are returned, in
    /// their order; those that have none are deallocated. To be called once.
    std::vector<BlockGroup> all_ready();

    Bytes counted(BlockGroup group) const { return groups_[group].counted; }  ///< data bytes seen
    std::size_t groups() const { return groups_.size(); }
    const DamStats& stats() const { return stats_; }

  private:
    struct Entry {
        Range range;
        std::uint64_t end = 0;
        BlockGroup first = 0;

        bool holds(std::uint64_t address) const { return range.begin <= address && address < end; }
    };
    struct Group {
        Bytes counted = 0;
        Bytes threshold = 0;
        Ps latest = 0;  ///< latest `visible` of its data so far
        bool held = false;
        bool spilled = false;  ///< the group's counter lies in memory
    };

    const Entry* find(std::uint64_t address);
    void append_groups(const Range& range);
    std::optional<Ready> count(BlockGroup group, Bytes bytes, Ps visible);
    Ps hold(BlockGroup group, Ps now);

    std::vector<Entry> table_;           ///< dependency table, ordered by address
    std::vector<std::uint64_t> begins_;  ///< where ranges of table_ begin: what the search reads
    std::size_t recent_ = 0;             ///< entry found last: packets of a row follow one another
    std::vector<Group> groups_;
    DamSpec spec_;
    std::deque<BlockGroup> held_;  ///< groups whose counters are held, the oldest first
    bool complete_ = false;        ///< AllReady has come
    DamStats stats_;
};

}  // namespace moehub::sim
