/// Simulated layers cut their GEMMs into tiles with the constants of `Kernels`, PyTorch's. Another
/// library's linear layers have the same form (linear.cpp), so theirs are put in their place. What
/// that form does not have stays out: how HBM slows tiles beside it, the least time of a step in k,
/// quantisation passes.
#include "sim/kernels/kernel_library.hpp"

#include <moehub/error.hpp>
#include <moehub/predict.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace moehub {

Gpu with_kernels(const Gpu& gpu, const std::string& name) {
    Gpu changed = gpu;
    if (name == "torch") return changed;
    const KernelLibrary& library = library_of(gpu, name);
    if (library.gemm_bf16.start == 0)
        throw InputError(fmt::format("kernel library {} has no GEMMs of bf16", name));
    Kernels& k = changed.kernels;
    changed.library = name;
    k.tensor_efficiency = library.gemm_bf16.tensor;
    k.hbm_efficiency = library.gemm.hbm;
    k.gemm_load = k.fp8_load = library.gemm.load * gpu.clock;
    k.gemm_store = library.gemm.store * gpu.clock;
    k.gemm_start = library.gemm_bf16.start;
    k.split_k_reduce = library.gemm.split_finish;
    if (library.gemm_fp8.start > 0)
        k.fp8_efficiency = std::min(1.0, library.gemm_fp8.tensor / library.gemm_bf16.tensor);
    return changed;
}

}  // namespace moehub
