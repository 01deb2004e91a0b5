/// What systems that move rows in buffers do with them on a GPU.
#pragma once
#include "systems/exchange.hpp"

namespace moehub::systems {

/// A row of the layer as it lies in a buffer.
BufferedRow buffered(Layer& layer, const Row& row);

/// A GPU's rows for every GPU, by expert and token.
std::vector<Buffer> permuted(Layer& layer, GpuId gpu);

std::int64_t count_rows(const std::vector<Buffer>& buffers);

/// Rows for each expert of a GPU, in the order of experts_of.
std::vector<std::int64_t> rows_by_expert(const Layer& layer, GpuId gpu,
                                         const std::vector<Buffer>& received);

/// The experts' results take the places of the rows, which are entered as delivered.
void compute(Layer& layer, GpuId gpu, Buffer& rows);
/// Enters results of `from`'s experts as returned.
void take_back(Layer& layer, GpuId from, const Buffer& results);

/// One GEMM per expert of a GPU, side by side, as a grouped kernel or streams run them.
Process run_experts(Layer& layer, GpuId gpu, std::vector<std::int64_t> rows, bool up);
/// The activation as a kernel of its own.
Process run_activation(Layer& layer, GpuId gpu, std::int64_t rows);
/// A pass that reads rows in one order and writes them in another.
Process reorder(Layer& layer, GpuId gpu, std::int64_t rows, std::int64_t distinct);
Process small_kernels(Layer& layer, GpuId gpu, int count);

}  // namespace moehub::systems
