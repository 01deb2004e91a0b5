/// How long a GPU takes for a list of operators, issued by an eager host or as a CUDA graph.
#pragma once
#include "sim/gpu/transformer.hpp"

#include <moehub/layer_options.hpp>
#include <moehub/units.hpp>

#include <array>
#include <numeric>

namespace moehub {

/// Seconds of the kernel alone, launch included.
double kernel_seconds(const Gpu& gpu, const Kernel& kernel);

struct BlockTime {
    std::array<Ps, kParts> kernels{};  ///< by Part
    Ps host = 0;                       ///< in which no kernel ran: the next was not yet issued

    Ps total() const { return std::accumulate(kernels.begin(), kernels.end(), host); }
    Ps of(Part part) const { return kernels[static_cast<std::size_t>(part)]; }
};

/// Eager: the host starts to issue when the block starts, one kernel every eager_launch, and never
/// waits; kernel i ends at max(end of the one before, i · eager_launch) + its time.
BlockTime block_time(const Gpu& gpu, const Operations& operations, Pass pass, bool eager);

/// Of a block's backward pass, the gradients of its weights: of a matrix's two GEMMs the second.
Ps weight_gradients_time(const Gpu& gpu, const Operations& operations);

}  // namespace moehub
