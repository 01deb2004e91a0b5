/// One MoE layer being simulated: what all systems share. Who has which tokens, rows and experts;
/// the machine; the kernels that every system runs; the books that are checked at the end.
#pragma once
#include "sim/fabric.hpp"
#include "sim/gpu/execute.hpp"
#include "sim/hub/hub.hpp"
#include "systems/books.hpp"

#include <moehub/layer.hpp>

#include <deque>
#include <vector>

namespace moehub::systems {

using sim::GpuId;
using sim::Process;

/// A (token, expert) pair: what is dispatched, computed and returned.
struct Row {
    std::uint32_t id = 0;     ///< unique in the layer; rows with smaller ids are wanted first
    std::uint32_t token = 0;  ///< of the layer
    std::uint16_t expert = 0;
    std::uint16_t slot = 0;  ///< among the token's experts
    std::uint16_t rank = 0;  ///< that computes it, among those with a copy of the expert
};

/// What systems may choose about the machine.
struct LayerSetup {
    sim::Queueing queueing = sim::Queueing::per_peer;
};

class Layer {
  public:
    Layer(const LayerInput& input, const LayerOptions& options, const LayerSetup& setup);
    Layer(const Layer&) = delete;
    ~Layer() { fabric.drop_programs(); }  // after an error some still stand in kernels of the cards

    // Sizes.
    std::uint32_t gpus() const { return gpus_; }
    int shards() const { return options.tensor_parallel; }
    int rank_of(GpuId gpu) const { return gpu / shards(); }
    int shard_of(GpuId gpu) const { return gpu % shards(); }
    GpuId gpu_of(int rank, int shard) const { return static_cast<GpuId>(rank * shards() + shard); }
    std::uint32_t first_token(GpuId gpu) const;
    std::uint32_t tokens(GpuId gpu) const { return first_token(gpu + 1) - first_token(gpu); }
    std::uint32_t top_k() const { return static_cast<std::uint32_t>(input.model.top_k); }
    Bytes row_bytes() const { return 2 * Bytes{input.model.hidden}; }  ///< bf16
    int inner() const { return input.model.expert_ffn / shards(); }    ///< width on one shard

    /// Rows of a GPU's tokens, in the order of their ids.
    const std::vector<Row>& rows_of(GpuId gpu) const { return rows_[gpu]; }
    /// The token and slot behind a row's id.
    std::uint32_t token_of(std::uint32_t id) const {
        return id / top_k() % static_cast<std::uint32_t>(input.routing.tokens);
    }
    std::uint32_t slot_of(std::uint32_t id) const { return id % top_k(); }
    std::int64_t rows() const { return input.routing.tokens * input.model.top_k; }
    const std::vector<int>& experts_of(GpuId gpu) const {
        return experts_[static_cast<std::size_t>(rank_of(gpu))];
    }
    /// Rows for which an expert's tiles are chosen when the rows are not known: what a router
    /// without favourites sends, and two standard deviations more, since one block too many may
    /// cost a whole wave.
    std::int64_t tiling_rows(int expert) const;
    /// Rows that the rank's copy of an expert gets.
    std::int64_t rows_on(int rank, int expert) const {
        return rows_on_[static_cast<std::size_t>(rank * input.model.experts + expert)];
    }

    // Kernels. Plans of 0 rows have no tiles.
    GemmPlan plan_up(std::int64_t rows) const;  ///< gate and up together where gated
    GemmPlan plan_down(std::int64_t rows) const;
    GemmPlan plan_down_and_send(std::int64_t rows) const;  ///< tiles for results that are sent away
    GemmPlan plan_up_like(std::int64_t rows, const GemmPlan& like) const;
    GemmPlan plan_down_like(std::int64_t rows, const GemmPlan& like) const;
    Process route(GpuId gpu);       ///< router GEMM, top-k, softmax
    Process run_shared(GpuId gpu);  ///< shared experts for the GPU's tokens
    Process scale(GpuId gpu);       ///< weighted sum of each token's results
    void first_gemm_ended(GpuId gpu);
    void ended(GpuId gpu);

    sim::Card& card(GpuId gpu) { return cards_[gpu]; }
    sim::Endpoint& endpoint(GpuId gpu) { return fabric.gpu(gpu); }
    sim::Hub& hub(GpuId gpu) { return hubs_[gpu]; }

    /// For a system that moves nothing.
    void deliver_all_locally();
    LayerResult result(std::string_view system) const;

    const LayerInput input;
    const LayerOptions options;
    sim::Fabric fabric;
    Books books;

  private:
    void make_rows();
    void choose_copies(GpuId gpu);
    Breakdown breakdown() const;

    std::uint32_t gpus_;
    std::deque<sim::Card> cards_;
    std::deque<sim::Hub> hubs_;
    std::vector<std::vector<int>> experts_;  ///< by rank
    std::vector<std::vector<Row>> rows_;     ///< by source GPU
    std::vector<std::int64_t> rows_on_;      ///< [rank][expert]
    Ps first_gemm_ = 0;
    Ps end_ = 0;             ///< of the last GPU
    std::vector<Ps> ended_;  ///< by GPU
};

}  // namespace moehub::systems
