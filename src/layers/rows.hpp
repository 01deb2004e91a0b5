/// What systems that move rows in messages do with them on a GPU.
#pragma once
#include "layers/exchange.hpp"

namespace moehub::layers {

/// A row of the layer as it travels.
CarriedRow carried(MoeLayer& layer, const Row& row);

/// A GPU's rows for every GPU, by expert and token; of those that share an expert, for the one with
/// the GPU's own number among its sharers.
std::vector<Rows> permuted(MoeLayer& layer, GpuId gpu);

/// The GPU that computes each row: what those who pass rows on are told with them.
class RowTargets {
  public:
    explicit RowTargets(const MoeLayer& layer);
    GpuId of(const CarriedRow& row) const {
        return targets_[std::size_t{row.token} * top_k_ + row.choice];
    }

  private:
    std::size_t top_k_;
    std::vector<GpuId> targets_;  ///< [token][choice]
};

std::int64_t count_rows(const std::vector<Rows>& rows);

/// Rows for each expert of a GPU, in the order of experts_of.
std::vector<std::int64_t> rows_by_expert(const MoeLayer& layer, GpuId gpu,
                                         const std::vector<Rows>& received);

/// The experts' results stand where the rows stood, which are entered as delivered.
void compute(MoeLayer& layer, GpuId gpu, Rows& rows);
/// Enters results of `from`'s experts as returned.
void take_back(MoeLayer& layer, GpuId from, const Rows& results);

/// One GEMM per expert of a GPU, side by side, as a grouped kernel or streams run them.
Process run_experts(MoeLayer& layer, GpuId gpu, std::vector<std::int64_t> rows, bool up);
/// The activation as a kernel of its own, which the host issues; nothing where it is fused.
Process run_activation(MoeLayer& layer, GpuId gpu, std::int64_t rows);
/// A pass that reads rows of `width` bytes in one order and writes them in another.
Process reorder(MoeLayer& layer, GpuId gpu, std::int64_t rows, std::int64_t distinct, Bytes width);
Process small_kernels(MoeLayer& layer, GpuId gpu, int count);

}  // namespace moehub::layers
