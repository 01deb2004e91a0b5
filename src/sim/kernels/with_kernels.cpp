#include "sim/kernels/kernel_library.hpp"

#include <moehub/error.hpp>
#include <moehub/predict.hpp>

#include <fmt/format.h>

namespace moehub {

Gpu with_kernels(const Gpu& gpu, const std::string& name) {
    Gpu changed = gpu;
    if (name == "torch") return changed;
    if (library_of(gpu, name).gemm_bf16.start == 0)
        throw InputError(fmt::format("kernel library {} has no GEMMs of bf16", name));
    changed.library = name;
    return changed;
}

}  // namespace moehub
