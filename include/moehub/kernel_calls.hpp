/// One call of a kernel of a serving engine: its shape on one card.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace moehub {

/// Largest extent of a call that is predicted.
inline constexpr std::int64_t kMostOfACall = 100'000'000;

/// How numbers are stored and multiplied.
enum class NumberFormat {
    bf16,
    fp8,        ///< one scale a tensor
    fp8_block,  ///< DeepSeek's: a scale for 128 inputs, and for 128 × 128 weights
    nvfp4,      ///< 4 bits, a scale of one byte for 16
    w4a16,      ///< weights of 4 bits, a scale of one byte for 32, multiplied in bf16: mxfp4, int4
};

/// A linear layer: [m, k] × [k, n]. Weights come from HBM.
struct GemmCall {
    NumberFormat format = NumberFormat::bf16;
    std::int64_t m = 0;
    std::int64_t n = 0;
    std::int64_t k = 0;
};

/// Causal attention over a paged cache, RoPE and the writing of the cache included: every sequence
/// brings several tokens.
struct PrefillCall {
    NumberFormat format = NumberFormat::bf16;  ///< format of queries and outputs: bf16 or fp8
    NumberFormat cache = NumberFormat::bf16;   ///< bf16 or fp8, in which scores are computed, too
    std::int64_t batch = 0;                    ///< sequences
    std::int64_t tokens = 0;                   ///< new tokens of a sequence
    std::int64_t context = 0;                  ///< tokens of a sequence in all; 0: only new ones
    std::int64_t heads = 0;
    std::int64_t kv_heads = 0;  ///< divides heads
    std::int64_t head_dim = 0;
    std::int64_t window = 0;  ///< a token sees so many up to itself; 0: all
};

/// Attention for one new token of each sequence, `context` before it in the cache.
struct DecodeCall {
    NumberFormat cache = NumberFormat::bf16;
    std::int64_t batch = 0;
    std::int64_t context = 0;
    std::int64_t heads = 0;
    std::int64_t kv_heads = 0;
    std::int64_t head_dim = 0;
    std::int64_t window = 0;
};

/// DeepSeek's latent attention (rank 512 and 64 for positions) of whole prompts.
struct MlaPrefillCall {
    NumberFormat cache = NumberFormat::bf16;
    std::int64_t batch = 0;
    std::int64_t tokens = 0;
    std::int64_t heads = 0;  ///< heads on this card
};

/// Latent attention for one new token of each sequence, weights absorbed.
struct MlaDecodeCall {
    NumberFormat cache = NumberFormat::bf16;
    std::int64_t batch = 0;
    std::int64_t context = 0;
    std::int64_t heads = 0;
};

/// The experts of one card between dispatch and combine: permutation, both GEMMs with their
/// activation, weighted sum. Of a group of `ep` ranks the one with most rows.
struct MoeCall {
    NumberFormat format = NumberFormat::bf16;
    std::int64_t tokens = 0;  ///< tokens of the whole group
    std::int64_t hidden = 0;
    std::int64_t expert_ffn = 0;  ///< inner width of a whole expert; tp cards share it
    std::int64_t top_k = 0;
    std::int64_t experts = 0;  ///< experts of the whole group
    std::int64_t tp = 1;
    std::int64_t ep = 1;
    /// DeepSeek's router: a token chooses within `kept_groups` of `groups` equal groups; 1:
    /// anywhere.
    std::int64_t groups = 1;
    std::int64_t kept_groups = 1;
    double skew = 0;    ///< 0: balanced; above: experts' shares follow a power law of this exponent
    bool gated = true;  ///< gate and up beside one another
};

using KernelCall =
    std::variant<GemmCall, PrefillCall, DecodeCall, MlaPrefillCall, MlaDecodeCall, MoeCall>;

std::string_view name_of(NumberFormat format);         ///< "fp8-block"
std::string_view kernel_name(const KernelCall& call);  ///< "mla-decode"

}  // namespace moehub
