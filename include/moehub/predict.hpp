/// How long one call of a kernel takes on a card, by the equations of src/sim/kernels and the
/// constants of a library (docs/cards.md).
#pragma once
#include <moehub/gpu.hpp>
#include <moehub/kernel_calls.hpp>

#include <string>

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
};

/// Throws InputError, one line without the card's name, when the card has no such library, the
/// library no such kernel, the card no such number format, or the shape is impossible or does not
/// fit in the card's memory. The same arguments give the same bits.
KernelCost predict_kernel(const Gpu& gpu, const std::string& library, const KernelCall& call);

/// FLOP/s of the card in the format that the call multiplies in.
double peak_flops(const Gpu& gpu, const KernelCall& call);

/// Bytes that the call's inputs, weights, cache and results take in the card's memory.
double memory_of(const KernelCall& call);

}  // namespace moehub
