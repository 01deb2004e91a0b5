#include "sim/kernels/kernels.hpp"

#include "plan/layer_work.hpp"
#include "sim/gpu/gemm.hpp"
#include "sim/gpu/memory_ops.hpp"

#include <algorithm>

namespace moehub {
namespace {}  // namespace

TrainingKernels::TrainingKernels(const TrainingRun& run)
    : gpu_(run.machine.gpu),
      trainer_(run.trainer),
      costs_(run.trainer.costs(run.machine.gpu.generation)),
      fp8_(run.precision != NumberFormat::bf16) {
    const auto found = gpu_.libraries.find(trainer_.library);
    if (found != gpu_.libraries.end() && found->second.gemm_bf16.start > 0)
        library_ = &found->second;
    launch_ = to_seconds(costs_.launch) * (1 - costs_.graphs);
}

double TrainingKernels::alone(const Product& shape, NumberFormat format) const {
    if (library_ != nullptr) {
        const KernelCost cost = linear(gpu_, *library_, {format, shape.rows, shape.n, shape.k});
        return cost.seconds - cost.other;  // casts are kernels of their own: cast()
    }
    GemmShape gemm{shape.rows, shape.k, shape.n, true};
    gemm.fp8 = format != NumberFormat::bf16;
    const GemmPlan plan = plan_gemm(gpu_, gemm);
    return plan.start + tiles_seconds(gpu_, plan) + plan.finish;
}

double TrainingKernels::grouped(const Product& each, double count, bool gradients) const {
    const double one = gradients ? gradient(each) : product(each);
    const double start =
        library_ != nullptr
            ? to_seconds(gemm_of(*library_, fp8_ ? costs_.fp8 : NumberFormat::bf16).start)
            : to_seconds(gpu_.kernels.gemm_start);
    // Experts follow one another without a launch between them.
    return start + count * std::max(one - start / costs_.tensor, 0.0);
}

double TrainingKernels::attention(const AttentionShape& shape, bool forward) const {
    const std::array<std::int64_t, 5> key{shape.batch, shape.heads, shape.keys, shape.window,
                                          forward};
    const auto [found, is_new] = attention_.try_emplace(key);
    if (is_new)
        found->second = (forward ? attention_forward_seconds(gpu_, shape)
                                 : attention_backward_seconds(gpu_, shape)) /
                        costs_.tensor;
    return found->second;
}

double TrainingKernels::stream(double read, double written) const {
    return stream_seconds(gpu_, {read, written, Access::in_order}) / costs_.memory;
}

double TrainingKernels::cast(std::int64_t rows, std::int64_t width) const {
    if (!fp8_) return 0;
    const double elements = static_cast<double>(rows) * static_cast<double>(width);
    return stream(4 * elements, 2 * elements);  // the largest first, then both ways round
}

double TrainingKernels::optimizer(double weights) const {
    // Reads a gradient and the states, writes the states and the weight.
    const double bytes = kFp32 + 2 * trainer_.state_bytes + kBf16;
    return bytes * weights / (gpu_.hbm_bandwidth * gpu_.kernels.hbm_mixed * costs_.memory);
}

}  // namespace moehub
