/// How each program is run on a layer or a tensor-parallel sub-layer: one function per program, in
/// the file of its name.
#pragma once
#include "layers/moe_layer.hpp"
#include "layers/tp/tp_layer.hpp"

namespace moehub::systems {

using namespace layers;

LayerResult run_ideal(const Job& job);
LayerResult run_torch(const Job& job);
LayerResult run_megatron_te(const Job& job);
LayerResult run_all_to_all(const Job& job);
LayerResult run_hierarchical(const Job& job);
LayerResult run_fastermoe(const Job& job);
LayerResult run_tutel(const Job& job);
LayerResult run_ccfuser(const Job& job);
LayerResult run_comet(const Job& job);
LayerResult run_deepep(const Job& job);
LayerResult run_deepep_ll(const Job& job);
LayerResult run_deepep_v2(const Job& job);
LayerResult run_hybrid_ep(const Job& job);
LayerResult run_one_sided(const Job& job);
LayerResult run_flashdmoe(const Job& job);
LayerResult run_mega_moe(const Job& job);
LayerResult run_nvls(const Job& job);
LayerResult run_dysharp(const Job& job);
LayerResult run_dysharp_basic(const Job& job);
LayerResult run_dysharp_comet(const Job& job);
LayerResult run_moe_hub_dysharp(const Job& job);
LayerResult run_moe_hub(const Job& job);
LayerResult run_mh_base(const Job& job);
LayerResult run_own(const Job& job);  ///< a user's program (own_system.cpp)

/// Runs a system's program, without checks; for simulate_layer and tests.
LayerResult run_job(const Job& job);

/// Throws InputError when a parameter is set that the system's program does not have.
void check_parameters(const SystemSpec& system);

// Programs of tensor-parallel sub-layers.
LayerResult run_tp_ideal(const TpJob& job);
LayerResult run_tp_nvls(const TpJob& job);
LayerResult run_sp_nvls(const TpJob& job);
LayerResult run_coconet(const TpJob& job);
LayerResult run_coconet_nvls(const TpJob& job);
LayerResult run_fuselib(const TpJob& job);
LayerResult run_fuselib_nvls(const TpJob& job);
LayerResult run_t3(const TpJob& job);
LayerResult run_t3_nvls(const TpJob& job);
LayerResult run_ladm(const TpJob& job);
LayerResult run_cais(const TpJob& job);

/// Runs a system's program, without checks; for simulate_tp and tests.
LayerResult run_tp_job(const TpJob& job);

}  // namespace moehub::systems
