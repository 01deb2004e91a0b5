/// How each program is run on a layer or a tensor-parallel sub-layer: one function per program, in
/// the file of its name.
#pragma once
#include "layers/moe_layer.hpp"
#include "layers/tp/tp_layer.hpp"

namespace moehub::systems {

using namespace layers;

constexpr Bytes kCount = 4;  ///< bytes of a count of rows, or of a token's number, on its way

using MoeProgram = LayerResult(const Job&);
MoeProgram run_ideal, run_torch, run_megatron_te, run_all_to_all, run_hierarchical, run_fastermoe,
    run_tutel, run_ccfuser, run_comet, run_deepep, run_deepep_ll, run_deepep_v2, run_hybrid_ep,
    run_one_sided, run_flashdmoe, run_mega_moe, run_nvls, run_dysharp, run_dysharp_basic,
    run_dysharp_comet, run_moe_hub_dysharp, run_moe_hub, run_mh_base;
LayerResult run_own(const Job& job);  ///< a user's program (own_system.cpp)

/// Runs a system's program, without checks; for simulate_layer and tests.
LayerResult run_job(const Job& job);

/// Throws InputError when a parameter is set that the system's program does not have.
void check_parameters(const SystemSpec& system);

/// Programs of tensor-parallel sub-layers.
using TpProgram = LayerResult(const TpJob&);
TpProgram run_tp_ideal, run_tp_nvls, run_sp_nvls, run_coconet, run_coconet_nvls, run_fuselib,
    run_fuselib_nvls, run_t3, run_t3_nvls, run_ladm, run_cais;

/// Runs a system's program, without checks; for simulate_tp and tests.
LayerResult run_tp_job(const TpJob& job);

}  // namespace moehub::systems
