/// Attention on one GPU as cuDNN and FlashAttention-2 compute it, bf16: seconds of the kernel
/// alone, launch included.
#pragma once
#include <moehub/gpu.hpp>

#include <cstdint>

namespace moehub {

/// What one GPU holds of an attention layer. The queries are the last of the keys, so `keys` is at
/// least `queries`: more when earlier keys come from a cache or from other GPUs.
struct AttentionShape {
    std::int64_t batch = 1;     ///< sequences
    std::int64_t heads = 0;     ///< of the queries
    std::int64_t kv_heads = 0;  ///< of keys and values; divides heads
    std::int64_t queries = 0;   ///< of one sequence
    std::int64_t keys = 0;
    std::int64_t qk_dim = 0;  ///< elements of a query and of a key
    std::int64_t v_dim = 0;   ///< elements of a value
    std::int64_t window = 0;  ///< a query sees so many keys up to its own; 0: all
    bool causal = true;       ///< a query sees no later keys
};

enum class AttentionKernel { cudnn, flash2 };

/// `clock` is the share of the full clock.
double attention_forward_seconds(const Gpu& gpu, const AttentionShape& shape,
                                 AttentionKernel kernel = AttentionKernel::cudnn, double clock = 1);

/// Gradients of queries, keys and values.
double attention_backward_seconds(const Gpu& gpu, const AttentionShape& shape,
                                  AttentionKernel kernel = AttentionKernel::cudnn,
                                  double clock = 1);

}  // namespace moehub
