/// The receiving side of a GPU's hub, beyond the plain path into memory: regions of rows, the AAU
/// that allocates rows in them, and the DAM that tells when row blocks are there.
#pragma once
#include "sim/endpoint.hpp"
#include "sim/hub/aau.hpp"
#include "sim/hub/dam.hpp"
#include "sim/hub/row_memory.hpp"
#include "sim/transfer.hpp"

#include <moehub/machine.hpp>

#include <deque>
#include <vector>

namespace moehub::sim {

/// The thread-block scheduler's side of the DAM. Slow path.
class ReadyListener {
  public:
    /// All rows of the block, or, after AllReady, those that there are.
    virtual void rows_ready(RegionId region, std::uint32_t row_block) = 0;

  protected:
    ~ReadyListener() = default;
};

/// Bytes of the source column that follows a row: GPU and row to return the result to.
inline constexpr Bytes kSourceColumn = 16;

struct RowSpace {
    std::string name;              ///< for errors
    std::int64_t rows = 0;         ///< room for
    Bytes data_bytes = 0;          ///< of a row, without source column
    std::uint32_t block_rows = 0;  ///< of a row block, which the DAM waits for; 0: nobody does
    std::uint32_t page_rows = 0;   ///< 0: one piece; else a multiple of block_rows
    bool source_column = false;
    bool allocated = true;  ///< by the AAU (`rowspMalloc`); false: a plain buffer
};

/// A train of a row at a hub.
struct HubArrival {
    const Transfer& transfer;
    const Train& train;
    Bytes offset = 0;  ///< of the train within its transfer
    Ps now = 0;
    Fault fault;
};

class Hub final : private Alarm {
  public:
    struct Options {
        Bytes page_pool = 0;      ///< for all paged regions; 0: no limit
        std::size_t numbers = 0;  ///< that a row carries
        Bytes line = 128;         ///< of the rows' packets
        HubUnits units = HubUnits::moe_hub;
    };
    Hub(Endpoint& gpu, const Machine& machine, const Options& options);
    Hub(const Hub&) = delete;

    RegionId add_region(const RowSpace& space);
    /// Rows that are sums; a region of its own kind, with its own numbers.
    RegionId add_sums(RowSums::Extent extent, Bytes row_bytes);
    RowSums& sums(RegionId region) { return sums_[region]; }
    void listen(ReadyListener& listener) { listener_ = &listener; }

    using Arrival = HubArrival;
    struct TakenIn {
        Ps passed = 0;   ///< when it has left the ingress
        Ps visible = 0;  ///< when it is in memory and acknowledged
    };
    /// A train of a row.
    TakenIn take_in(const Arrival& arrival);
    /// … of a row that goes to several regions, or is read from what experts made of it there.
    struct ListArrival {
        Arrival arrival;
        std::span<const RegionId> regions;
    };
    TakenIn take_in_list(const ListArrival& list);
    struct Found {
        Ps ready = 0;  ///< when its rows' numbers are known
        Sum sum;       ///< over all of them
    };
    Found read_list(const ListArrival& list);
    /// Where what experts make of a region's rows lies, in sums of the same numbers.
    void set_results(RegionId region, RegionId sums) { regions_[region].results = sums; }
    /// The sum over several regions, read by this GPU; `stretch` names the row by its RowID.
    Sum read_results(std::span<const RegionId> regions, const RowStretch& stretch);
    /// A region will get so many rows in all: the last row block will not fill up.
    void expect(RegionId region, std::int64_t rows);
    /// A load of sums: what it finds here, and what one of this GPU's own brought.
    Sum read_sum(RegionId region, const RowStretch& stretch) const {
        return sums_[region].read(stretch);
    }
    struct SumArrival {
        RegionId into = kNoRegion;
        RowStretch stretch;
        std::uint32_t answers = 1;  ///< GPUs whose contributions it is
        Ps visible = 0;             ///< when it is in memory
    };
    void add_sum(const SumArrival& arrival, const Sum& sum, const Fault& fault);
    /// Has counters of this GPU tell when sums are complete: `watch.first` + p goes up by one when
    /// all of the region's p-th piece is in memory. Once for a region, before anything comes.
    void watch_sums(RegionId region, const SumsWatch& watch);
    /// AllReady: nothing more will come.
    void all_ready();

    std::uint32_t rows(RegionId region) const { return regions_[region].memory.rows(); }
    const RowMemory& memory(RegionId region) const { return regions_[region].memory; }
    std::size_t regions() const { return regions_.size(); }
    const RowSpace& space(RegionId region) const { return regions_[region].space; }

    /// The producer's side: which copy of a logical destination the next row goes to. Made anew
    /// with a policy, empty.
    ReplicaTable& replicas(ReplicaPolicy policy) {
        return replicas_ = ReplicaTable(policy, gpu_.id());
    }
    ReplicaTable& replicas() { return replicas_; }

    const Aau& aau() const { return aau_; }
    const Dam& dam() const { return dam_; }

  private:
    struct Region {
        RowSpace space;
        RowMemory memory;
        RegionId aau = kNoRegion;
        RegionId results = kNoRegion;
        std::int64_t expected = -1;  ///< rows; -1: not known
        BlockGroup first_block = 0;  ///< once there are blocks
    };
    struct BlockOf {  // by group of the DAM
        RegionId region;
        std::uint32_t row_block;
    };
    struct Due {
        Ps time;
        BlockGroup group;
        bool operator>(const Due& other) const {
            return time != other.time ? time > other.time : group > other.group;
        }
    };

    struct Written {  // a piece of a row, or its source column
        RegionId region;
        RowMemory::Piece piece;
        bool source = false;
        std::uint64_t tag = 0;
    };
    struct Late {  // of a fault
        Ps time;
        Written what;
    };

    void ring() override;
    TakenIn take_in_row(const Arrival& arrival, RegionId region);
    TakenIn take_in_plain(const Arrival& arrival);
    void write(const Written& what, const Fault& fault);
    void put_down(const Written& what);
    Aau::Located locate(RegionId region, const RowStretch& stretch, std::uint32_t packets, Ps now);
    void release(BlockGroup group);
    void add_blocks(RegionId region, const Aau::Located& located);
    struct Counted {  // data of one row that is acknowledged
        std::uint64_t address;
        Bytes bytes;
        std::uint32_t packets;
        Ps visible;
    };
    void count(const Counted& what);
    void expect_last(RegionId region);
    void tell(const Dam::Ready& ready);

    Endpoint& gpu_;
    HubUnits units_;
    Ps ready_latency_;
    HubSpec plain_;
    Bytes line_;
    std::size_t numbers_;
    Aau aau_;
    Dam dam_;
    ReplicaTable replicas_{ReplicaPolicy::round_robin};
    std::vector<Region> regions_;
    std::deque<RowSums> sums_;
    std::vector<SumsWatcher> watchers_;  ///< by region of sums, where any is watched
    std::vector<BlockOf> blocks_;
    std::vector<Due> due_;  ///< min-heap
    std::vector<Late> late_;
    ReadyListener* listener_ = nullptr;
};

}  // namespace moehub::sim
