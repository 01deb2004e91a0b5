/// Kernels executed on a simulated GPU: thread blocks on SM slots that draw on tensor cores and HBM
/// together with whatever else runs there. Alone on the card, a kernel takes what its plan predicts
/// (tile.hpp, memory_ops.hpp).
#pragma once
#include "sim/endpoint.hpp"
#include "sim/gpu/memory_ops.hpp"
#include "sim/gpu/shared_rate.hpp"
#include "sim/gpu/sm_pool.hpp"
#include "sim/gpu/tile.hpp"

#include <moehub/gpu.hpp>

namespace moehub::sim {

/// One GPU's compute side.
struct Card {
    Card(Endpoint& endpoint, const Gpu& gpu);

    Endpoint& endpoint;
    Gpu gpu;
    SmPool sms;
    SharedRate tensor;  ///< FLOP/s
    SharedRate hbm;     ///< bytes/s
};

/// Runs all tiles of a GEMM; returns when the last is stored. Tiles are pulled in the plan's order.
/// The plan must outlive the process.
Process run_gemm(Card& card, const GemmPlan& plan);

/// Runs a memory-bound kernel on all SMs.
Process run_stream(Card& card, Traffic traffic);

}  // namespace moehub::sim
