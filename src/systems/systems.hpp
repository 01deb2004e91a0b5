/// The programs of all systems: each is spawned on every GPU of a layer.
#pragma once
#include "systems/layer.hpp"

namespace moehub::systems {

class HubLayer;
struct MegatronTe;

void spawn_ideal(Layer& layer, GpuId gpu);
void spawn_megatron_te(MegatronTe& megatron, GpuId gpu);
void spawn_moe_hub(HubLayer& hub, GpuId gpu);
void spawn_mh_base(HubLayer& hub, GpuId gpu);

}  // namespace moehub::systems
