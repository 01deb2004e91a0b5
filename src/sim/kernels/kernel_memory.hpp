/// What number formats cost, and the widths of DeepSeek's latent attention.
#pragma once
#include <moehub/predict.hpp>

#include <array>

namespace moehub {

inline constexpr std::int64_t kMlaRank = 512;  ///< of the latent that keys and values are made of
inline constexpr std::int64_t kMlaRope = 64;   ///< of a key that carries the position
inline constexpr std::int64_t kMlaNope = 128;  ///< of a head's key that does not, and of its value

/// In which the call multiplies.
NumberFormat format_of(const KernelCall& call);

/// All that the call needs: that, and its cache's.
std::array<NumberFormat, 2> formats_of(const KernelCall& call);

double bytes_of(NumberFormat format);                  ///< of a number, nvfp4's scales included
double weight_bytes_of(NumberFormat format);           ///< the same of a weight
double flops_of(const Gpu& gpu, NumberFormat format);  ///< dense, of the whole card

}  // namespace moehub
