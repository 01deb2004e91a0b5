/// What a GPU sends, where channels of SMs divide its tokens.
#pragma once
#include "layers/exchange.hpp"

#include <vector>

namespace moehub::systems {

using namespace layers;

/// Rows by [channel][peer], in which the rows of a copy follow one another.
using Lanes = std::vector<std::vector<Rows>>;

/// Channels divide a GPU's tokens evenly: token t belongs to channel t · channels / tokens.
Lanes lanes_of(const MoeLayer& layer, GpuId gpu, int channels);

}  // namespace moehub::systems
