/// One MoE layer being simulated: what all systems share. Who has which tokens, rows and experts,
/// the kernels that every system runs, and the books that are checked at the end.
#pragma once
#include "layers/gpus.hpp"
#include "model/reference.hpp"

#include <moehub/layer.hpp>

#include <deque>
#include <functional>
#include <optional>
#include <vector>

namespace moehub::layers {

/// What must be true at the end of every layer, whatever the system: each row lay with its expert
/// once, and each result came back once. Where rows carry numbers, also what came back.
class Books {
  public:
    /// `width`: numbers of a row; 0: rows carry none.
    Books(const LayerInput& input, int shards, int width);

    // Each row is reported once when it lies with its expert, and once when it is back.
    void delivered(std::uint32_t token, std::uint32_t choice, int shard);
    void returned(std::uint32_t token, std::uint32_t choice, int shard, const double* numbers);
    /// The sum of all of a token's weighted results, made on the way: `identity` says who is in it,
    /// each `times` (RowSums). Throws std::logic_error when that is not all of them, once.
    void returned_sum(std::uint32_t token, std::uint64_t identity, std::uint64_t times,
                      const double* numbers);
    /// Stands for a row in sums: 64 bits, well mixed.
    std::uint64_t identity(std::uint32_t token, std::uint32_t choice) const;
    /// A result times its gate weight, kept until the end; null where rows carry no numbers.
    const double* weighted(std::uint32_t token, std::uint32_t choice, const double* numbers);
    /// Throws std::logic_error when a row is missing.
    void check() const;

    // Numbers; null where rows carry none.
    const double* input(std::uint32_t token) const;
    /// What an expert's shard makes of a row; kept until the end.
    const double* result(int expert, int shard, const double* row);
    /// The shared experts have run for a token.
    void add_shared(std::uint32_t token);
    /// The error of outputs against the reference layer, relative to the largest output.
    double largest_error() const;

  private:
    std::size_t index(std::uint32_t token, std::uint32_t choice, int shard) const;
    void enter(std::vector<bool>& list, std::size_t at, const char* what);
    std::size_t width() const { return static_cast<std::size_t>(reference_->width()); }

    const Routing& routing_;
    int shards_;
    std::vector<bool> delivered_;  ///< [token][choice][shard]
    std::vector<bool> returned_;
    std::optional<ReferenceLayer> reference_;
    std::vector<double> inputs_;               ///< [token][width]
    std::deque<std::vector<double>> results_;  ///< rows that experts made
    std::vector<double> outputs_;              ///< [token][width]
};

/// A (token, expert) pair: what is dispatched, computed and returned.
struct Row {
    std::uint32_t id = 0;     ///< unique in the layer; rows with smaller ids are wanted first
    std::uint32_t token = 0;  ///< token's number in the layer
    std::uint16_t expert = 0;
    std::uint16_t choice = 0;  ///< among the token's experts
    std::uint16_t rank = 0;    ///< computing rank's place among those with a copy of the expert
};

/// What a GEMM does that ends with an activation.
struct FusedEnd {
    double stored = 1;  ///< share of the computed columns that is stored
    double read = 0;    ///< further bytes that are read for a row
};

/// What to simulate. All of it outlives the run.
struct Job {
    const LayerInput& input;
    const SystemSpec& system;
    const LayerOptions& options;
    /// By which an eager host is ahead when the layer starts; none: by what it keeps from layer to
    /// layer, backward by nothing.
    std::optional<Ps> host_lead = {};
    sim::Scheme scheme = sim::Scheme::windows;
    sim::Fault fault = {};  ///< for tests
};

/// Throws InputError when no system could run this.
void check_input(const LayerInput& input, const LayerOptions& options);

class MoeLayer {
  public:
    explicit MoeLayer(const Job& job);
    MoeLayer(const MoeLayer&) = delete;
    ~MoeLayer();

    // Sizes.
    int shards() const { return options.tensor_parallel; }
    int rank_of(GpuId gpu) const { return gpu / shards(); }
    int shard_of(GpuId gpu) const { return gpu % shards(); }
    GpuId gpu_of(int rank, int shard) const { return static_cast<GpuId>(rank * shards() + shard); }
    std::uint32_t first_token(GpuId gpu) const;
    std::uint32_t tokens(GpuId gpu) const { return first_token(gpu + 1) - first_token(gpu); }
    GpuId home_of(std::uint32_t token) const;  ///< the GPU whose token it is
    std::uint32_t top_k() const { return static_cast<std::uint32_t>(input.model.top_k); }
    Bytes row_bytes() const { return 2 * Bytes{input.model.hidden}; }  ///< bf16, in memory
    Bytes dispatch_bytes() const;  ///< bytes of a row as it is sent, with the scales of FP8
    Bytes combine_bytes() const { return bytes_of_row(system.combine_element); }
    bool dispatches_fp8() const { return system.dispatch_element <= 1; }
    int inner() const { return input.model.expert_ffn / shards(); }  ///< width on one shard

    /// Rows of a GPU's tokens, in the order of their ids.
    const std::vector<Row>& rows_of(GpuId gpu) const { return rows_[gpu]; }
    /// The token and choice behind a row's id.
    std::uint32_t token_of(std::uint32_t id) const {
        return id / top_k() % static_cast<std::uint32_t>(input.routing.tokens);
    }
    std::uint32_t choice_of(std::uint32_t id) const { return id % top_k(); }
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

    std::int64_t rows_on(GpuId gpu) const;  ///< over all its experts

    // Kernels. Plans of 0 rows have no tiles.
    GemmPlan plan_up(std::int64_t rows) const;              ///< gate and up together where gated
    GemmPlan plan_up_on(std::int64_t rows, int sms) const;  ///< plan on so many SMs
    GemmPlan plan_down(std::int64_t rows) const;
    /// One of so many parts, by columns, on so many SMs.
    GemmPlan plan_down_part(std::int64_t rows, int parts, int sms) const;
    /// Tiles for results that are sent away; of so many rows each, 0: as is best.
    GemmPlan plan_down_and_send(std::int64_t rows, std::int64_t tile_rows = 0) const;
    GemmPlan plan_up_like(std::int64_t rows, const GemmPlan& like) const;
    GemmPlan plan_down_like(std::int64_t rows, const GemmPlan& like) const;
    /// What a fused activation of rows of `width` elements makes of the first GEMM's end: of gate
    /// and up one column; on the way back it reads them and stores both their gradients.
    FusedEnd end_of_up(std::int64_t width) const;
    /// The activation as a kernel of its own, on rows of `width` elements.
    Traffic activation(std::int64_t rows, std::int64_t width) const;
    Process route(GpuId gpu);       ///< router GEMM, top-k, softmax; nothing in the backward pass
    Process run_shared(GpuId gpu);  ///< shared experts for the GPU's tokens
    Process scale(GpuId gpu);       ///< weighted sum of each token's results
    bool backward() const { return options.pass == Pass::backward; }
    /// All of the GPU's GEMMs are done; in the backward pass the gradients of its weights follow.
    void experts_ended(GpuId gpu);
    /// Until those gradients are done: for systems that compute them before they go on.
    sim::Endpoint::Until gradients(GpuId gpu) { return endpoint(gpu).until(gradients_, 1); }
    /// Awaited last of all: until those gradients are done.
    Process finish(GpuId gpu);

    Host& host(GpuId gpu) { return hosts_[gpu]; }
    sim::Card& card(GpuId gpu) { return gpus.card(gpu); }
    sim::Endpoint& endpoint(GpuId gpu) { return gpus.endpoint(gpu); }

    /// A step of a row, now, for the timeline.
    void note_step(std::uint32_t token, std::uint32_t choice, const char* what, GpuId gpu) {
        if (sim::Recorder* recorder = gpus.recorder())
            recorder->rows.step(token, choice, {what, gpu, endpoint(gpu).now()});
    }
    void note_computed(std::uint32_t token, std::uint32_t choice, GpuId gpu) {
        if (sim::Recorder* recorder = gpus.recorder())
            recorder->rows.computed(token, choice, gpu, endpoint(gpu).now());
    }
    /// For the timeline: a result is back.
    void note_returned(std::uint32_t token, std::uint32_t choice) {
        note_step(token, choice, "returned", home_of(token));
    }

    /// For a system that moves nothing.
    void deliver_all_locally();
    /// When all programs have run: checks the books.
    LayerResult result() const;

    const LayerInput& input;
    const SystemSpec& system;
    const LayerOptions& options;
    Gpus gpus;
    Books books;

  private:
    Bytes bytes_of_row(double element) const {
        return static_cast<Bytes>(element * input.model.hidden);
    }
    void make_rows();
    void follow_rows(sim::RowLog& log) const;
    void choose_copies(GpuId gpu);
    Process weight_gradients(GpuId gpu);

    std::deque<Host> hosts_;                 ///< by GPU
    std::vector<std::vector<int>> experts_;  ///< by rank
    std::vector<std::vector<Row>> rows_;     ///< by source GPU
    std::vector<std::int64_t> rows_on_;      ///< [rank][expert]
    sim::CounterId gradients_ = 0;           ///< 1 once the weights' are done
};

/// With the lead L that an eager host keeps from layer to layer; `run_layer` makes a result of a
/// layer. First with a host that is ahead without limit. Where that is more than it keeps, again:
/// a host that waits starts with what it gained after its wait; one that never waits, and needs H
/// to issue a layer that then takes T(L), starts the next with L + T(L) - H, and so goes on until
/// the layer lasts as long as its host. A backward pass is issued from its start on.
LayerResult run_with_host(const Job& job, const std::function<LayerResult(MoeLayer&)>& run_layer);

template <class Shared>
LayerResult run_program(const Job& job, const char* name, Process (*program)(Shared&, GpuId)) {
    return run_with_host(job,
                         [&](MoeLayer& layer) { return run_on<Shared>(layer, name, program); });
}

}  // namespace moehub::layers
