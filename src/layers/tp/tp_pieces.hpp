/// What programs of tensor-parallel sub-layers do: run their two GEMMs by row blocks, work on
/// several pieces side by side, call in-switch collectives on slices; and how they are run.
#pragma once
#include "layers/tp/tp_layer.hpp"
#include "sim/collective/communicator.hpp"
#include "sim/gpu/row_gemm.hpp"

#include <functional>
#include <vector>

namespace moehub::layers {

/// Row blocks of a GEMM against pieces. Counts, for each of one kind, those of the other that it
/// overlaps and that are still missing.
class Overlaps {
  public:
    Overlaps(const Pieces& pieces, std::uint32_t rows, std::uint32_t block_rows);

    std::uint32_t blocks() const { return blocks_; }
    /// Calls `complete(piece)` for each piece whose last missing block this is.
    template <class Complete>
    void block_done(std::uint32_t block, Complete complete) {
        for (std::uint32_t piece = first_piece(block); piece <= last_piece(block); ++piece)
            if (--blocks_left_[piece] == 0) complete(piece);
    }
    /// Calls `complete(block)` for each block whose last missing piece this is.
    template <class Complete>
    void piece_done(std::uint32_t piece, Complete complete) {
        for (std::uint32_t block = first_block(piece); block <= last_block(piece); ++block)
            if (--pieces_left_[block] == 0) complete(block);
    }
    std::uint32_t first_block(std::uint32_t piece) const {
        return pieces_.begin(piece) / block_rows_;
    }
    std::uint32_t last_block(std::uint32_t piece) const {
        return (pieces_.end(piece) - 1) / block_rows_;
    }
    std::uint32_t first_piece(std::uint32_t block) const {
        return pieces_.piece_of(block * block_rows_);
    }
    std::uint32_t last_piece(std::uint32_t block) const {
        return pieces_.piece_of(std::min(rows_, (block + 1) * block_rows_) - 1);
    }

  private:
    const Pieces& pieces_;
    std::uint32_t rows_;
    std::uint32_t block_rows_;
    std::uint32_t blocks_;
    std::vector<std::uint32_t> blocks_left_;  ///< by piece
    std::vector<std::uint32_t> pieces_left_;  ///< by block
};

class FirstGemm {
  public:
    /// `made(piece)`: its partial sums lie in memory, and in the books. On so many SMs; row blocks
    /// in their order, from the one of `first_piece` on and around.
    using Made = std::function<void(std::uint32_t piece)>;
    FirstGemm(TpLayer& layer, GpuId gpu, int sms, Made made, std::uint32_t first_piece = 0);

    /// As a kernel: launch, all row blocks, end.
    Process run();

    // Block by block, for who decides when.
    const GemmPlan& plan() const { return plan_; }
    const Overlaps& overlaps() const { return overlaps_; }
    void use_sms(int sms) { gemm_.use_sms(sms); }
    Process launch() {
        return run_for(layer_.gpus.card(gpu_), plan_.start, KernelName::first_gemm);
    }
    void start(std::uint32_t block) { gemm_.start(block, 1); }
    Process finish() { return gemm_.finish(layer_.rows()); }
    /// Row blocks that fill the card.
    std::int64_t blocks_at_once() const {
        const std::int64_t columns = plan_.tiles_across * plan_.split;
        return (layer_.gpus.card(gpu_).gpu.sms - 1) / columns + 1;
    }
    /// `co_await gemm.ended(n);` goes on when so many row blocks are done.
    sim::Endpoint::Until ended(std::int64_t blocks) { return gemm_.ended(blocks); }

  private:
    void block_done(std::uint32_t block);

    TpLayer& layer_;
    GpuId gpu_;
    Made made_;
    GemmPlan plan_;
    Overlaps overlaps_;
    sim::RowGemm gemm_;
};

class SecondGemm {
  public:
    SecondGemm(TpLayer& layer, GpuId gpu, int sms);

    const GemmPlan& plan() const { return plan_; }
    Process launch() {
        return run_for(layer_.gpus.card(gpu_), plan_.start, KernelName::second_gemm);
    }
    /// The rows of a piece are there: blocks that have all theirs start.
    void came(std::uint32_t piece);
    void use_sms(int sms) { gemm_.use_sms(sms); }
    Process finish() { return gemm_.finish(layer_.rows()); }

  private:
    TpLayer& layer_;
    GpuId gpu_;
    GemmPlan plan_;
    Overlaps overlaps_;
    sim::RowGemm gemm_;
};

/// All pieces, or those whose home the GPU is, in their order.
std::vector<std::uint32_t> all_pieces(const TpLayer& layer);
std::vector<std::uint32_t> own_pieces(const TpLayer& layer, GpuId gpu);
std::int64_t rows_at_home(const TpLayer& layer, GpuId gpu);
/// The first piece of the home behind this GPU: from there on, and around, its own come last.
std::uint32_t piece_behind(const TpLayer& layer, GpuId gpu);

/// SMs that a kernel gives to communication: `communication_sms`, or, where that is 0, the eighth
/// of the card's that FuseLib's kernel loses in occupancy.
inline int lost_sms(const TpLayer& layer) {
    const int asked = layer.system.communication_sms;
    return asked > 0 ? asked : (layer.input.machine.gpu.sms + 7) / 8;
}

/// Processes of a GPU that run side by side: `co_await several.all()` ends when all have ended.
class Several {
  public:
    explicit Several(sim::Endpoint& endpoint)
        : endpoint_(endpoint), ended_(endpoint.add_counter("processes side by side")) {}
    Several(const Several&) = delete;

    void spawn(const char* name, Process work) {
        ++spawned_;
        endpoint_.spawn(name, then_count(endpoint_, ended_, std::move(work)));
    }
    sim::Endpoint::Until all() { return endpoint_.until(ended_, spawned_); }

  private:
    static Process then_count(sim::Endpoint& endpoint, sim::CounterId ended, Process work) {
        co_await work;
        endpoint.increase(ended);
    }

    sim::Endpoint& endpoint_;
    sim::CounterId ended_;
    std::int64_t spawned_ = 0;
};

/// The first GEMM as a kernel of its own, which tells of every piece; nothing where there is none.
struct FirstKernel {
    int sms = 0;
    std::uint32_t first_piece = 0;
};
Process run_first_by_pieces(TpLayer& layer, GpuId gpu, FirstKernel kernel,
                            std::function<void(std::uint32_t)> made);

/// The norm of the GPU's own rows as a kernel of its own, and all of them shared.
Process run_norm(TpLayer& layer, GpuId gpu, TpLayer::Sum sum);

/// One GPU alone: its partial sums are the sums, and all rows are its own.
LayerResult run_tp_alone(const TpJob& job);

/// Runs a system's program. `travel`: rows are underway all the time; the bound has none.
template <class Shared>
LayerResult run_tp(const TpJob& job, Homes homes, Process (*program)(Shared&, GpuId),
                   bool travel = true) {
    TpLayer layer(job, homes);
    return run_on<Shared>(layer, "sub-layer", [&](Shared& shared, GpuId gpu) {
        if (travel) layer.begin(gpu);
        return program(shared, gpu);
    });
}

/// Runs a system's program on several GPUs; one alone has nothing to move.
template <class Shared>
LayerResult run_tp_of_several(const TpJob& job, Homes homes, Process (*program)(Shared&, GpuId)) {
    return job.input.machine.gpus() == 1 ? run_tp_alone(job) : run_tp(job, homes, program);
}

// In-switch collectives on a tensor-parallel sub-layer's rows, each GPU its own share.

/// The rows whose home the GPU is, which follow one another (Homes::blockwise).
inline sim::Slice own_rows(const TpLayer& layer, GpuId gpu) {
    const std::uint32_t first = layer.pieces.of(gpu, 0);
    sim::Slice slice;
    if (first >= layer.pieces.count()) return slice;
    const std::uint32_t behind =
        std::min(layer.pieces.of(gpu, layer.pieces.each() - 1), layer.pieces.count() - 1);
    slice.target.row = layer.pieces.begin(first);
    slice.begin = layer.pieces.begin(first) * layer.row_bytes();
    slice.bytes = layer.pieces.end(behind) * layer.row_bytes() - slice.begin;
    return slice;
}

/// Everyone's partial sums, added up on their way to this GPU's totals.
inline sim::Slice own_sums(const TpLayer& layer, GpuId gpu) {
    sim::Slice slice = own_rows(layer, gpu);
    slice.target.region = layer.partials;
    slice.target.into = layer.totals;
    return slice;
}

/// Rows of this GPU, from its sums `from`, to everyone's outputs.
inline sim::Slice own_outputs(TpLayer& layer, GpuId gpu, sim::RegionId from) {
    sim::Slice slice = own_rows(layer, gpu);
    slice.target.region = layer.outputs;
    slice.target.numbers = layer.gpus.hub(gpu).sums(from).numbers(slice.target.row);
    return slice;
}

/// Calls share() for all pieces of the GPU.
inline void share_own(TpLayer& layer, GpuId gpu, TpLayer::Sum sum, bool normalised) {
    for (const std::uint32_t piece : own_pieces(layer, gpu))
        layer.share(gpu, piece, sum, normalised);
}

}  // namespace moehub::layers
