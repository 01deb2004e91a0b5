/// What one GPU computes of a layer for one micro-batch, by what it is for.
#pragma once
#include "plan/kernels.hpp"

#include <array>
#include <cstddef>

namespace moehub {

/// Which part of a training step a kernel's time belongs to.
enum class Sort { attention, dense, experts, head, small };
inline constexpr std::size_t kSorts = 5;

struct ComputeWork {
    std::array<double, kSorts> seconds{};
    double operators = 0;  ///< that a host issues

    void add(Sort sort, double time, double count = 1);
    double sum() const;
    ComputeWork& operator+=(const ComputeWork& other);
};

/// One part of a layer both ways, and what may be computed a second time.
struct LayerWork {
    ComputeWork forward;
    ComputeWork backward;
    double gradients = 0;  ///< seconds of backward: gradients of weights
    ComputeWork norms;     ///< forward again
    ComputeWork activations;
    ComputeWork core;     ///< attention between its matrices
    ComputeWork latents;  ///< of latent attention, up to queries, keys and values

    LayerWork& operator+=(const LayerWork& other);
};

/// Tokens of one micro-batch on one GPU.
struct TokenShare {
    std::int64_t sequences = 1;  ///< of the micro-batch
    std::int64_t length = 0;     ///< of a sequence, all of it
    int tp = 1;
    int cp = 1;

    std::int64_t gathered() const;  ///< that its matrices multiply
    std::int64_t own() const;       ///< that its norms and residual adds pass over
};

struct WorkContext {
    const TrainingRun& run;
    const TrainingKernels& kernels;
};

LayerWork attention_work(const WorkContext& context, const TokenShare& tokens);
/// An FFN of `ffn` inner width that tensor parallelism shares: dense layers, shared experts.
LayerWork ffn_work(const WorkContext& context, const TokenShare& tokens, std::int64_t ffn);
/// Router and routed experts; their rows come and go by the system.
struct ExpertShare {
    int ep = 1;
    int etp = 1;
};
LayerWork experts_work(const WorkContext& context, const TokenShare& tokens,
                       const ExpertShare& share);
LayerWork embedding_work(const WorkContext& context, const TokenShare& tokens);
LayerWork head_work(const WorkContext& context, const TokenShare& tokens);
/// What multi-token prediction adds to a layer: two norms and a matrix that joins them.
LayerWork joining_work(const WorkContext& context, const TokenShare& tokens);

}  // namespace moehub
