/// The programs of all systems: each is spawned on every GPU of a layer.
#pragma once
#include "systems/layer.hpp"

namespace moehub::systems {

class HubLayer;
/// An ideal layer, with the tiles that suit each expert's rows, or those of the rows expected:
/// which is faster depends on how the experts' tiles fill the card together.
struct Ideal {
    Layer& layer;
    bool tiles_of_expected_rows = false;
};
struct MegatronTe;

void spawn_ideal(Ideal& ideal, GpuId gpu);
void spawn_megatron_te(MegatronTe& megatron, GpuId gpu);
void spawn_moe_hub(HubLayer& hub, GpuId gpu);
void spawn_mh_base(HubLayer& hub, GpuId gpu);

}  // namespace moehub::systems
