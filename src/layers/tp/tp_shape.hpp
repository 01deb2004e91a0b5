/// What a tensor-parallel sub-layer multiplies.
#pragma once
#include <moehub/tp.hpp>

namespace moehub::layers {

struct TpShape {
    std::int64_t hidden = 0;
    std::int64_t before = 0;   ///< inner width of the first GEMM, over all GPUs; 0: there is none
    std::int64_t after = 0;    ///< columns of the second, over all GPUs; 0: there is none
    bool after_whole = false;  ///< every GPU computes all of these columns
    bool backward = false;
};

TpShape tp_shape(const Model& model, SubLayer part);

/// Of a width that is cut over GPUs: one GPU's share. They differ by one at most.
inline std::int64_t share_of(std::int64_t width, std::uint32_t gpu, std::uint32_t gpus) {
    return width * (gpu + 1) / gpus - width * gpu / gpus;
}

}  // namespace moehub::layers
