/// What systems that move rows in messages do with them on a GPU.
#pragma once
#include "layers/exchange.hpp"
#include "layers/moe_layer.hpp"

#include <vector>

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

// Rows of one token that one GPU computes: they may travel as one copy of the token, out and back.

/// The GPU's rows by the GPU that computes them, in the order of tokens: the rows of a copy follow
/// one another.
std::vector<Rows> rows_by_peer(const MoeLayer& layer, GpuId gpu);

/// Distinct tokens in a buffer in which the rows of a copy follow one another.
std::int64_t copies_in(const Rows& rows);

/// Cut behind every `copies` copies.
std::vector<Rows> cut(const Rows& rows, std::int64_t copies);

/// Received rows by whose tokens they are, in the order in which they stand.
std::vector<Rows> rows_by_home(const MoeLayer& layer, const Rows& rows);

// The experts of a GPU as kernels of their own, one after the other, once all rows are there: a
// grouped GEMM, the activation, a grouped GEMM.

/// Bytes of a row as the experts read it.
double expert_bytes(const MoeLayer& layer);

/// A pass over the GPU's tokens before they are sent, where they travel in FP8.
Process quantise_tokens(MoeLayer& layer, GpuId gpu);
/// A pass over received rows where experts read another format than what was sent.
Process convert_rows(MoeLayer& layer, GpuId gpu, std::int64_t rows);

/// With so many rows for each of the GPU's experts. Takes no time where only rows move.
Process run_grouped_experts(MoeLayer& layer, GpuId gpu, std::vector<std::int64_t> rows);

/// Shared experts beside everything else; `done` is 1 in the end.
Process run_shared_beside(MoeLayer& layer, GpuId gpu, sim::CounterId done);
/// Shared experts last, and the end of the layer.
Process finish_with_shared(MoeLayer& layer, GpuId gpu);

}  // namespace moehub::layers
