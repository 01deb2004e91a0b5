/// What a kernel, or a share of a GPU's SMs, is for: the words that timelines use.
#pragma once
#include <cstddef>
#include <cstdint>

namespace moehub::sim {

enum class KernelName : std::uint8_t {
    other,
    // A MoE layer's, in the order in which rows meet them.
    router,
    quantise,
    counts,     ///< rows for each expert: counted, told to others
    addresses,  ///< order of the rows, running sums
    reorder,
    dispatch,
    relay,  ///< rows and results of other nodes, passed on
    convert,
    expert_up,
    activation,
    expert_down,
    combine,
    weighted_sum,
    shared_experts,
    gradients,
    // A tensor-parallel sub-layer's.
    first_gemm,
    exchange,  ///< partial sums and rows, moved and normalised by SMs of their own
    reduce,
    norm,
    gather,
    second_gemm,
};
inline constexpr std::size_t kKernelNames = 22;

const char* name_of(KernelName kernel);

}  // namespace moehub::sim
