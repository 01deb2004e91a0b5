/// The kernel that sends a GPU's tokens by lists.
#pragma once
#include "layers/multimem_layer.hpp"

#include <functional>

namespace moehub::layers {

/// What a GPU knows of its own tokens once they are routed; returns how many stores they take in
/// its node.
std::int64_t add_tokens(MultimemLayer& rows, GpuId gpu);
/// Tokens that leave the node as well.
struct Crossings {
    std::int64_t stores = 0;                        ///< of all tokens
    std::function<int(std::uint32_t token)> store;  ///< one token's; returns how many
};
/// The system's `sending_sms` SMs send them. `answered` counts acknowledgements inside the node.
Process send_tokens(MultimemLayer& rows, GpuId gpu, sim::CounterId answered,
                    Crossings crossings = {});
/// All that a GPU's experts made of their rows is in memory.
void write_all_results(MultimemLayer& rows, GpuId gpu);

}  // namespace moehub::layers
