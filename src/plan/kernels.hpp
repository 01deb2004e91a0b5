/// Seconds of a training step's kernels on one card, at the rates that the trainer keeps over a
/// long run. For one thread: what was asked is kept.
#pragma once
#include "sim/gpu/transformer.hpp"

#include <moehub/kernel_library.hpp>
#include <moehub/training.hpp>

#include <array>
#include <cstdint>
#include <map>

namespace moehub {

/// [rows, k] × [k, n].
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

    /// y = x·w; bf16 where the run is or `bf16` asks for it.
    double product(const Product& shape, bool bf16 = false) const;
    /// Gradients of weights, added to those of earlier micro-batches in fp32.
    double gradient(const Product& shape, bool bf16 = false) const;
    /// `count` products of the same shape in one call, as of experts; `gradients`: of weights.
    double grouped(const Product& each, double count, bool gradients) const;

    double attention_forward(const AttentionShape& shape) const;
    double attention_backward(const AttentionShape& shape) const;

    /// A kernel that reads and writes so many bytes.
    double stream(double read, double written) const;
    /// Casting to FP8, both ways round; 0 in bf16.
    double cast(std::int64_t rows, std::int64_t width) const;
    /// AdamW over so many weights.
    double optimizer(double weights) const;

    /// Of the host, for each operator that no graph replays.
    double launch() const { return launch_; }
    /// Of the host, for one that none could replay.
    double eager_launch() const { return to_seconds(costs_.launch); }

  private:
    double alone(const Product& shape, NumberFormat format) const;
    double memory_of_gradients(double weights) const;
    double attention(const AttentionShape& shape, bool forward) const;

    const Gpu& gpu_;
    const TrainerSpec& trainer_;
    const TrainerCosts& costs_;
    const KernelLibrary* library_ = nullptr;  ///< none: PyTorch's
    bool fp8_ = false;
    double launch_ = 0;
    /// By sequences, heads, keys, window and direction: thousands of blocks are dealt out for each,
    /// and layouts ask again.
    mutable std::map<std::array<std::int64_t, 5>, double> attention_;
};

}  // namespace moehub
