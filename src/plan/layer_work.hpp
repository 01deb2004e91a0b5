/// Seconds of a training step's kernels on one card, at the rates that the trainer keeps over a
/// long run. For one thread: what was asked is kept.
#pragma once
#include "sim/gpu/transformer.hpp"

#include <moehub/kernel_library.hpp>
#include <moehub/training.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>

namespace moehub {

/// A matrix product [rows, k] × [k, n].
struct Product {
    std::int64_t rows = 0;
    std::int64_t k = 0;
    std::int64_t n = 0;
};

class TrainingKernels {
  public:
    /// Refers to the run, which outlives it.
    explicit TrainingKernels(const TrainingRun& run);

    bool fp8() const { return fp8_; }

    /// Seconds of y = x·w; bf16 where the run is or `bf16` asks for it.
    double product(const Product& shape, bool bf16 = false) const {
        if (!fp8_ || bf16) return alone(shape, NumberFormat::bf16) / costs_.tensor;
        return alone(shape, costs_.fp8) /
               (costs_.fp8_tensor > 0 ? costs_.fp8_tensor : costs_.tensor);
    }
    /// Seconds of gradients of weights, added to those of earlier micro-batches in fp32.
    double gradient(const Product& shape, bool bf16 = false) const {
        const double weights = static_cast<double>(shape.k) * static_cast<double>(shape.n);
        return std::max(product({shape.k, shape.rows, shape.n}, bf16),
                        memory_of_gradients(weights));
    }
    /// Seconds of `count` like products in one call, as of experts; `gradients`: of weights.
    double grouped(const Product& each, double count, bool gradients) const;

    double attention_forward(const AttentionShape& shape) const { return attention(shape, true); }
    double attention_backward(const AttentionShape& shape) const { return attention(shape, false); }

    /// Seconds of a kernel that reads and writes so many bytes.
    double stream(double read, double written) const;
    /// Seconds of casting to FP8, both ways round; 0 in bf16.
    double cast(std::int64_t rows, std::int64_t width) const;
    /// Seconds of AdamW over so many weights.
    double optimizer(double weights) const;

    /// Seconds of the host for each operator, those that graphs replay counted out.
    double launch() const { return launch_; }
    /// Seconds of the host for an operator that no graph could replay.
    double eager_launch() const { return to_seconds(costs_.launch); }

  private:
    double alone(const Product& shape, NumberFormat format) const;
    double memory_of_gradients(double weights) const {
        return 2 * kFp32 * weights / (gpu_.hbm_bandwidth * gpu_.kernels.hbm_mixed * costs_.memory);
    }
    double attention(const AttentionShape& shape, bool forward) const;

    const Gpu& gpu_;
    const TrainerSpec& trainer_;
    const TrainerCosts& costs_;
    const KernelLibrary* library_ = nullptr;  ///< null: PyTorch's kernels
    bool fp8_ = false;
    double launch_ = 0;
    /// Seconds by sequences, heads, keys, window and direction: thousands of blocks are dealt out
    /// for each, and layouts ask again.
    mutable std::map<std::array<std::int64_t, 5>, double> attention_;
};

/// Which part of a training step a kernel's time belongs to.
enum class StepPart { attention, dense, experts, head, small };
inline constexpr std::size_t kStepParts = 5;

struct ComputeWork {
    std::array<double, kStepParts> seconds{};
    double operators = 0;  ///< operators that a host issues

    void add(StepPart part, double time, double count = 1) {
        seconds[static_cast<std::size_t>(part)] += time;
        operators += count;
    }
    double sum() const { return std::accumulate(seconds.begin(), seconds.end(), 0.0); }
    ComputeWork& operator+=(const ComputeWork& other);
};

/// One part of a layer both ways, and what may be computed a second time.
struct LayerWork {
    ComputeWork forward;
    ComputeWork backward;
    double gradients = 0;  ///< seconds of gradients of weights, a part of backward
    ComputeWork norms;     ///< norms of the forward pass
    ComputeWork activations;
    ComputeWork core;     ///< attention between its matrices
    ComputeWork latents;  ///< latent attention, up to queries, keys and values

    LayerWork& operator+=(const LayerWork& other);
};

/// Tokens of one micro-batch on one GPU.
struct TokenShare {
    std::int64_t sequences = 1;  ///< sequences in the micro-batch
    std::int64_t length = 0;     ///< tokens of a whole sequence
    int tp = 1;
    int cp = 1;

    std::int64_t gathered() const {
        return std::max<std::int64_t>(1, sequences * length / cp);
    }  ///< tokens that its matrices multiply
    std::int64_t own() const {
        return std::max<std::int64_t>(1, sequences * length / cp / tp);
    }  ///< tokens that its norms and residual adds pass over
};

struct WorkContext {
    const TrainingRun& run;
    const TrainingKernels& kernels;
};

LayerWork attention_work(const WorkContext& context, const TokenShare& tokens);
/// An FFN of `ffn` inner width that tensor parallelism shares: dense layers, shared experts.
LayerWork ffn_work(const WorkContext& context, const TokenShare& tokens, std::int64_t ffn);
/// How router and routed experts are shared; their rows come and go by the system.
struct ExpertShare {
    int ep = 1;
    int etp = 1;
};
LayerWork experts_work(const WorkContext& context, const TokenShare& tokens,
                       const ExpertShare& share);
LayerWork embedding_work(const WorkContext& context, const TokenShare& tokens);
LayerWork head_work(const WorkContext& context, const TokenShare& tokens);
/// Work that multi-token prediction adds to a layer: two norms and a matrix that joins them.
LayerWork joining_work(const WorkContext& context, const TokenShare& tokens);

}  // namespace moehub
