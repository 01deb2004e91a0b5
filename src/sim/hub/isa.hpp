/// MoE-Hub's programming interface as kernels see it: where a row goes is said by a MallocID and a
/// RowID; its address is the receiver's business.
#pragma once
#include "sim/endpoint.hpp"
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
    const double* numbers = nullptr;  ///< where rows carry numbers
    CounterId answered = kNoCounter;  ///< one more when all of it is acknowledged
};

/// `st.rowsp` for a whole row.
void store_row(Endpoint& gpu, const RowStore& row);

/// `st.rowsp.nop`: the row's source column, with low priority.
void store_source(Endpoint& gpu, const RowStore& row, std::uint64_t source);

/// Both as one transfer, for row grain inside a node: a train of the row's packets and the
/// column's, with the same flits. The row must be whole packets.
void store_row_and_source(Endpoint& gpu, const RowStore& row, std::uint64_t source);

/// Conventional stores of a row to a known row number.
struct PlainStore {
    MallocId to;
    std::uint32_t row = 0;  ///< its number
    Bytes bytes = 0;
    const double* numbers = nullptr;
    CounterId arrived = kNoCounter;   ///< at the receiver, one more when all of it is in memory
    CounterId answered = kNoCounter;  ///< here, one more when all of it is acknowledged
};
void store(Endpoint& gpu, const PlainStore& row);

/// A word that says "done", to a counter of another GPU (or of this one).
void store_flag(Endpoint& gpu, GpuId to, CounterId arrived);

}  // namespace moehub::sim
