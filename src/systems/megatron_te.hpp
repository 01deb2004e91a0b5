/// What the programs of all GPUs share in a Megatron-TE layer.
#pragma once
#include "systems/exchange.hpp"

namespace moehub::systems {

struct MegatronTe {
    explicit MegatronTe(Layer& of)
        : layer(of),
          counts(of),
          dispatch(of, "rows of a peer"),
          probabilities(of, "gate weights of a peer"),
          combine(of, "results of a peer") {}

    Layer& layer;
    CountExchange counts;
    AllToAll dispatch;
    AllToAll probabilities;
    AllToAll combine;
};

}  // namespace moehub::systems
