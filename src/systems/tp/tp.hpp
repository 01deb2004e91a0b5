/// How each program is run on a tensor-parallel layer: one function per program, in the file of its
/// name.
#pragma once
#include "layers/tp_layer.hpp"

namespace moehub::systems {

LayerResult run_sp_nvls(const layers::TpJob& job);

}  // namespace moehub::systems
