/// What the SMs of a channel need for each row that crosses between nodes or is sent on inside one
/// (ForwardedExchange). Those of a channel work side by side.
#pragma once
#include "layers/moe_layer.hpp"

namespace moehub::systems {

struct ForwardingSms {
    int per_channel = 1;
    int lanes = 1;          ///< 1: an SM serves all peers in turn; else warps are divided over them
    bool queues = false;    ///< rows pass queues, out of which SMs of the receiver copy them
    Ps send_token = 0;      ///< a token that a sender looks at,
    Ps send_row = 0;        ///< and one that it has cross
    Ps forward_token = 0;   ///< a token that a lane looks at,
    Ps forward_row = 0;     ///< and one that it sends on
    Ps receive_row = 0;     ///< out of a queue
    Ps contribute_row = 0;  ///< a result on its way to the GPU that adds up
    Ps collect_row = 0;     ///< a result that is added up in its node,
    Ps collect_sum = 0;     ///< a sum of those,
    Ps return_row = 0;      ///< and one that crosses home
    Ps add_row = 0;         ///< a node's sum that is added at home
};

/// DeepEP's normal kernels: pairs of SMs, warps divided over peers, queues.
ForwardingSms warps_through_queues(const layers::MoeLayer& layer);
/// SMs whose copy engines move whole rows to where they belong (HybridEP, DeepEP V2).
ForwardingSms copy_engines(const layers::MoeLayer& layer);

}  // namespace moehub::systems
