/// Work of a tensor-parallel sub-layer's programs on several pieces side by side.
#pragma once
#include "layers/tp/tp_layer.hpp"

#include <vector>

namespace moehub::layers {

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

}  // namespace moehub::layers
