/// Kernels executed on a simulated GPU: thread blocks on SMs that draw on tensor cores and HBM
/// together with whatever else runs there. Alone on the card, a kernel takes what its plan predicts
/// (tile.hpp, memory_ops.hpp).
#pragma once
#include "sim/endpoint.hpp"
#include "sim/gpu/blocks.hpp"
#include "sim/gpu/memory_ops.hpp"
#include "sim/gpu/shared_rate.hpp"
#include "sim/gpu/tile.hpp"

#include <moehub/gpu.hpp>

namespace moehub::sim {

/// One GPU's compute side.
struct Card {
    Card(Endpoint& endpoint, const Gpu& gpu);
    Card(const Card&) = delete;  // its blocks refer to it

    Endpoint& endpoint;
    Gpu gpu;
    SharedRate tensor;  ///< FLOP/s
    SharedRate hbm;     ///< bytes/s
    Activity activity;
    BlockScheduler blocks;
};

/// Runs all tiles of a GEMM; returns when the last is stored. Tiles are started in the plan's
/// order. The plan must outlive the process.
Process run_gemm(Card& card, const GemmPlan& plan, KernelName kernel = KernelName::other,
                 Priority priority = Priority::normal);

/// Runs a memory-bound kernel on all SMs: its blocks take their time there and draw on HBM.
Process run_stream(Card& card, Traffic traffic, KernelName kernel = KernelName::other);
/// Its thread blocks alone, as part of a kernel that runs already.
Process run_stream_blocks(Card& card, Traffic traffic, KernelName kernel, Priority priority);

/// Has the card busy for so long with something that is not modelled block by block.
Process run_for(Card& card, double seconds, KernelName kernel = KernelName::other);

/// A kernel on the card as long as this lives, for the timeline alone.
class Launched {
  public:
    Launched(Card& card, KernelName kernel) : card_(card) {
        if (KernelLog* log = card.blocks.kernel_log())
            launch_ = log->launched(kernel, card.endpoint.now());
    }
    ~Launched() {
        if (KernelLog* log = card_.blocks.kernel_log())
            log->ran_until(launch_, card_.endpoint.now());
    }
    Launched(const Launched&) = delete;

  private:
    Card& card_;
    std::size_t launch_ = 0;
};

}  // namespace moehub::sim
