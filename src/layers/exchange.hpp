/// What a collective library does for a MoE layer: all-to-all with uneven counts, and counts of
/// rows told to all. Rows move in bulk: one transfer per pair of GPUs.
#pragma once
#include "layers/moe_layer.hpp"
#include "sim/collective/communicator.hpp"

#include <deque>
#include <vector>

namespace moehub::layers {

/// Collectives keep the GPU waiting for the network from launch to end.
struct Communicating {
    sim::Card& card;
    explicit Communicating(sim::Card& on) : card(on) {
        card.activity.communicate(1, card.endpoint.now());
    }
    ~Communicating() { card.activity.communicate(-1, card.endpoint.now()); }
    Communicating(const Communicating&) = delete;
};

/// Which GPUs exchange with one another; each is in one group.
using GpuGroups = std::vector<std::vector<GpuId>>;
GpuGroups all_together(const MoeLayer& layer);
GpuGroups of_a_node(const MoeLayer& layer);
GpuGroups of_a_rail(const MoeLayer& layer);   ///< one in each node
GpuGroups of_a_rank(const MoeLayer& layer);   ///< the shards of its experts
GpuGroups of_a_shard(const MoeLayer& layer);  ///< the same shard of every rank

/// Every GPU puts in rows for each other of its group and takes out some from each, any number of
/// times. The programs of all GPUs share it.
class AllToAll {
  public:
    AllToAll(MoeLayer& layer, const char* name, KernelName kernel, const GpuGroups& groups);

    /// Sends rows[peer] of `bytes` each to each peer and ends when everything for this GPU has
    /// arrived. What stays on the GPU is copied in its memory.
    Process exchange(GpuId gpu, std::vector<Rows> rows, Bytes bytes);
    /// Sends rows of bytes[peer] in all to each peer, where several rows travel as one.
    Process exchange(GpuId gpu, std::vector<Rows> rows, std::vector<Bytes> bytes);
    /// Sends the same rows to all of its group. Rows that stay where they are need no copy.
    Process gather(GpuId gpu, const Rows& rows, Bytes bytes);
    /// After exchange: from each peer, in the order in which it was put in.
    std::vector<Rows>& received(GpuId gpu) { return received_[gpu]; }
    Rows received_from_all(GpuId gpu) const;
    const std::vector<GpuId>& peers(GpuId gpu) const { return groups_[group_[gpu]]; }

  private:
    Process exchange_parcels(GpuId gpu, std::vector<sim::Parcel> parcels);

    MoeLayer& layer_;
    KernelName kernel_;
    GpuGroups groups_;
    std::vector<std::size_t> group_;           ///< by GPU
    std::deque<sim::Communicator> within_;     ///< by group
    std::vector<std::vector<Rows>> received_;  ///< [gpu][peer]
};

/// How many rows each GPU will send to each expert, told to the expert's GPU. A backward pass knows
/// them from its forward pass.
class RowCounts {
  public:
    explicit RowCounts(MoeLayer& layer);
    /// All GPUs tell all others, in `bytes` each.
    Process exchange(GpuId gpu, Bytes bytes);
    /// For programs that tell each other in their own way: what a GPU has to say, and what it
    /// heard.
    std::vector<std::vector<std::int64_t>> counted(GpuId source) const;  ///< by GPU
    void heard(GpuId gpu, const sim::Received& told) {
        told_[gpu][told.from] = told.message.counts;
    }
    /// After exchange: rows that `source` will send to an expert of the GPU.
    std::int64_t rows(GpuId gpu, GpuId source, int expert) const;
    std::int64_t rows(GpuId gpu, int expert) const;  ///< rows that all GPUs have for an expert
    std::int64_t rows(GpuId gpu) const;              ///< rows for all of a GPU's experts
    /// Distinct tokens among the rows from a source.
    std::int64_t tokens(GpuId gpu, GpuId source) const;

  private:
    const std::vector<std::int64_t>& told(GpuId gpu, GpuId source) const;

    MoeLayer& layer_;
    sim::Communicator all_;
    std::vector<std::vector<std::vector<std::int64_t>>> told_;
    ///< [gpu][source][its expert], then the number of distinct tokens
};

/// Rows of experts that several GPUs share: a row goes to one of them, the one with the number that
/// its home has among its own, and is gathered by the others; of what all made of it the same GPU
/// gets the sum, which goes home. Where a group lies in one node, a row crosses between nodes once.
class Shards {
  public:
    explicit Shards(MoeLayer& layer);

    /// Among the GPUs that share experts: what this one received, with `bytes` a row, to all of
    /// them. Ends with what all received. A GPU that shares nothing has nobody to tell.
    Process gather(GpuId gpu, Rows rows, Bytes bytes);
    Rows gathered(GpuId gpu) const { return gather_.received_from_all(gpu); }

    /// A GPU's results of all gathered rows; those of each go to the GPU that received it, which
    /// adds them up.
    Process scatter_sums(GpuId gpu, const Rows& results);
    /// After that: what is to go home, by home. A sum is as many rows as GPUs share an expert, in
    /// their order.
    std::vector<Rows> sums(GpuId gpu) const;
    /// Bytes of sums.
    std::vector<Bytes> sum_bytes(const std::vector<Rows>& sums) const;
    /// Enters the sums that came home.
    void take_back(const Rows& sums);

    bool shared() const { return layer_.shards() > 1; }

  private:
    MoeLayer& layer_;
    AllToAll gather_;
    AllToAll scatter_;
};

}  // namespace moehub::layers
