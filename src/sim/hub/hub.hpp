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
    /// All rows of the block are there, or, after AllReady, those that there are.
    virtual void rows_ready(RegionId region, std::uint32_t row_block) = 0;

  protected:
    ~ReadyListener() = default;
};

/// Bytes of the source column that follows a row: GPU and row to return the result to.
inline constexpr Bytes kSourceColumn = 16;

struct RowSpace {
    std::string name;              ///< name in errors
    std::int64_t rows = 0;         ///< rows that there is room for
    Bytes data_bytes = 0;          ///< bytes of a row, without source column
    std::uint32_t block_rows = 0;  ///< rows of a row block, which the DAM waits for; 0: nobody does
    std::uint32_t page_rows = 0;   ///< rows of a page, a multiple of block_rows; 0: one piece
    bool source_column = false;
    bool allocated = true;  ///< the AAU allocates rows (`rowspMalloc`); false: a plain buffer
};

/// A train of a row at a hub.
struct HubArrival {
    const Transfer& transfer;
    const Train& train;
    Bytes offset = 0;  ///< offset of the train within its transfer
    Ps now = 0;
    Fault fault;
};

class Hub final : private Alarm {
  public:
    struct Options {
        Bytes page_pool = 0;      ///< bytes for all paged regions; 0: no limit
        std::size_t numbers = 0;  ///< numbers that a row carries
        Bytes line = 128;         ///< bytes of a line of a row: the payload of its packets
        HubUnits units = HubUnits::moe_hub;
    };
    Hub(Endpoint& gpu, const Machine& machine, const Options& options);
    Hub(const Hub&) = delete;

    RegionId add_region(const RowSpace& space);
    /// Adds rows that are sums: a region of its own kind, with its own numbers.
    RegionId add_sums(RowSums::Extent extent, Bytes row_bytes);
    RowSums& sums(RegionId region) { return sums_[region]; }
    void listen(ReadyListener& listener) { listener_ = &listener; }

    using Arrival = HubArrival;
    struct TakenIn {
        Ps passed = 0;   ///< when the train has left the ingress
        Ps visible = 0;  ///< when the train is in memory and acknowledged
    };
    /// Takes in a train of a row.
    TakenIn take_in(const Arrival& arrival);
    /// A train of a row that goes to several regions, or is read from their experts' results.
    struct ListArrival {
        Arrival arrival;
        std::span<const RegionId> regions;
    };
    TakenIn take_in_list(const ListArrival& list);
    struct Found {
        Ps ready = 0;  ///< when the rows' numbers are known
        Sum sum;       ///< sum over all of the regions' rows
    };
    Found read_list(const ListArrival& list);
    /// Says in which sums, of the same numbers, what experts make of a region's rows lies.
    void set_results(RegionId region, RegionId sums) { regions_[region].results = sums; }
    /// The sum over several regions, read by this GPU; `stretch` names the row by its RowID.
    Sum read_results(std::span<const RegionId> regions, const RowStretch& stretch);
    /// Says that a region will get so many rows in all: the last row block will not fill up.
    void expect(RegionId region, std::int64_t rows);
    /// Reads what a load of sums finds here.
    Sum read_sum(RegionId region, const RowStretch& stretch) const {
        return sums_[region].read(stretch);
    }
    struct SumArrival {
        RegionId into = kNoRegion;
        RowStretch stretch;
        std::uint32_t answers = 1;  ///< GPUs whose contributions the sum is
        Ps visible = 0;             ///< when the sum is in memory
    };
    void add_sum(const SumArrival& arrival, const Sum& sum, const Fault& fault);
    /// Has counters of this GPU tell when sums are complete: `watch.first` + p goes up by one when
    /// all of the region's p-th piece is in memory. Once for a region, before anything comes.
    void watch_sums(RegionId region, const SumsWatch& watch);
    /// Handles AllReady: nothing more will come.
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
        std::int64_t expected = -1;  ///< rows that will come; -1: not known
        BlockGroup first_block = 0;  ///< first of the region's blocks, once there are any
    };
    struct BlockOf {  // the row block that a group of the DAM stands for
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
    struct Late {  // a write that a fault delays
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
    std::vector<SumsWatcher> watchers_;  ///< watcher of each region of sums, where any is watched
    std::vector<BlockOf> blocks_;
    std::vector<Due> due_;  ///< min-heap
    std::vector<Late> late_;
    ReadyListener* listener_ = nullptr;
};

}  // namespace moehub::sim
