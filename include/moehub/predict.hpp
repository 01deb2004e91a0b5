/// How long one call of a kernel takes on a card, by the equations of src/sim/kernels and the
/// constants of a library (docs/cards.md).
#pragma once
#include <moehub/gpu.hpp>
#include <moehub/kernel_calls.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>

namespace moehub {

/// Seconds of a call and what they are made of.
struct KernelCost {
    double seconds = 0;
    double start = 0;   ///< launches, first loads, last sums: what even the smallest call takes
    double tensor = 0;  ///< the products, with what SMs do beside them
    double memory = 0;  ///< HBM, at the same time as the products
    double other = 0;   ///< passes before and after: permutation, quantisation, sums of splits
    double flops = 0;   ///< of the mathematics, without padding
    double bytes = 0;   ///< to and from HBM
    double peak = 0;    ///< FLOP/s of the card in the format that the kernel multiplies in
};

/// Throws InputError, one line without the card's name, when the card has no such library, the
/// library no such kernel, the card no such number format, or the shape is impossible or does not
/// fit in the card's memory. The same arguments give the same bits.
KernelCost predict_kernel(const Gpu& gpu, const std::string& library, const KernelCall& call);

/// The card of a model whose linear layers and prompts' attention are the library's; what MoE
/// layers run stays PyTorch's, and so does the way back. Throws InputError as above; "torch" is the
/// card as it is.
Gpu with_kernels(const Gpu& gpu, const std::string& library);

/// Times of calls of one library on one card, each shape predicted once. Not for several threads.
class PredictionCache {
  public:
    PredictionCache(Gpu gpu, std::string library);

    /// As predict_kernel.
    const KernelCost& cost(const KernelCall& call);
    double seconds(const KernelCall& call) { return cost(call).seconds; }

  private:
    using Key = std::array<std::int64_t, 13>;
    struct Hash {
        std::size_t operator()(const Key& key) const;
    };
    static Key key_of(const KernelCall& call);

    Gpu gpu_;
    std::string library_;
    std::unordered_map<Key, KernelCost, Hash> known_;
};

/// Bytes that the call's inputs, weights, cache and results take in the card's memory.
double memory_of(const KernelCall& call);

}  // namespace moehub
