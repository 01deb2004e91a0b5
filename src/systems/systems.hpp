/// How each program is run on a layer: one function per program, in the file of its name.
#pragma once
#include "layers/run_program.hpp"

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

}  // namespace moehub::systems
