/// MoE-Hub's programming interface as kernels see it: where a row goes is said by a MallocID and a
/// RowID; its address is the receiver's business.
#pragma once
#include "sim/endpoint.hpp"
#include "sim/fabric.hpp"
#include "sim/hub/hub.hpp"

namespace moehub::sim {

/// Names a region on a GPU, for any producer.
struct MallocId {
    GpuId gpu = 0;
    RegionId region = kNoRegion;
};

/// Reserves a region of rows on the hub's GPU.
inline MallocId rowsp_malloc(const Endpoint& gpu, const RowSpace& space) {
    return {gpu.id(), gpu.hub()->add_region(space)};
}

/// One row on its way: what `st.rowsp` instructions of a warp together carry. The SM is told when
/// the hub has taken it in.
struct RowStore {
    MallocId to;
    std::uint32_t row_id = 0;
    Bytes bytes = 0;
    const double* numbers = nullptr;  ///< numbers of the row, where rows carry numbers
    CounterId answered = kNoCounter;  ///< counter of wholly acknowledged rows
};

/// Stores a whole row: `st.rowsp`.
void store_row(Endpoint& gpu, const RowStore& row);

/// Stores the row's source column, with low priority: `st.rowsp.nop`.
void store_source(Endpoint& gpu, const RowStore& row, std::uint64_t source);

/// Stores a row and its source column as one transfer, for row grain inside a node: a train of the
/// row's packets and the column's, with the same flits. The row must be whole packets.
void store_row_and_source(Endpoint& gpu, const RowStore& row, std::uint64_t source);

/// Conventional stores of a row to a known row number.
struct PlainStore {
    MallocId to;
    std::uint32_t row = 0;  ///< number of the row
    Bytes bytes = 0;
    const double* numbers = nullptr;
    CounterId arrived = kNoCounter;   ///< counter at the receiver of rows all in memory
    CounterId answered = kNoCounter;  ///< counter here of wholly acknowledged rows
};
void store(Endpoint& gpu, const PlainStore& row);

/// Sends a word that says "done" to a counter of another GPU (or of this one).
void store_flag(Endpoint& gpu, GpuId to, CounterId arrived);

/// AllReady: when all of a GPU's stores are acknowledged its hub tells all others, and a hub that
/// has heard so from everyone releases what its DAM still holds back: nothing more will come.
class AllReady {
  public:
    explicit AllReady(Fabric& fabric);

    /// The counter for a store's acknowledgement (`RowStore::answered`), the same on all GPUs.
    CounterId acknowledged() const { return acknowledged_; }
    /// Starts the hub's own part on one GPU, which will have made so many stores.
    void start(GpuId gpu, std::int64_t stores);
    /// `co_await all_ready.reached(gpu);`
    Endpoint::Until reached(GpuId gpu) { return fabric_.gpu(gpu).until(reached_, 1); }

  private:
    Process announce(GpuId gpu, std::int64_t stores);
    Process watch(GpuId gpu);

    Fabric& fabric_;
    CounterId acknowledged_ = 0;
    CounterId senders_done_ = 0;  ///< GPUs whose rows have all arrived everywhere
    CounterId reached_ = 0;       ///< 1 once every GPU is
};

}  // namespace moehub::sim
