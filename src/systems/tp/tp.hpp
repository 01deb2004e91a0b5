/// Programs of tensor-parallel sub-layers: one function per program, in the file of its name.
#pragma once
#include "layers/tp/tp_layer.hpp"

namespace moehub::systems {

LayerResult run_tp_ideal(const layers::TpJob& job);
LayerResult run_tp_nvls(const layers::TpJob& job);
LayerResult run_sp_nvls(const layers::TpJob& job);
LayerResult run_coconet(const layers::TpJob& job);
LayerResult run_coconet_nvls(const layers::TpJob& job);
LayerResult run_fuselib(const layers::TpJob& job);
LayerResult run_fuselib_nvls(const layers::TpJob& job);
LayerResult run_t3(const layers::TpJob& job);
LayerResult run_t3_nvls(const layers::TpJob& job);
LayerResult run_ladm(const layers::TpJob& job);
LayerResult run_cais(const layers::TpJob& job);

/// Runs a system's program, without checks; for simulate_tp and tests.
LayerResult run_tp_job(const layers::TpJob& job);

}  // namespace moehub::systems
