#include "sim/gpu/transformer.hpp"
#include "sim/kernels/kernels.hpp"

#include <algorithm>

namespace moehub {
namespace {

/// The full clock, as in simulated layers.
double seconds(const Gpu& gpu, const GemmShape& shape) {
    if (gpu.library != "torch" && !shape.fp8)
        return linear(gpu, gpu.libraries.at(gpu.library),
                      {NumberFormat::bf16, shape.rows, shape.n, shape.k})
            .seconds;
    const GemmPlan plan = plan_gemm(gpu, shape);
    return plan.start + tiles_seconds(gpu, plan) + plan.finish;
}

double seconds(const Gpu& gpu, const Traffic& traffic) {
    return stream_seconds(gpu, traffic);
}

/// Prompts under a serving engine's library: its own kernel, with RoPE and the writing of the cache
/// inside. Training, and latent attention (whose keys and values differ in width), stay cuDNN's.
bool has_own_kernel(const Gpu& gpu, const AttentionShape& shape) {
    return gpu.library != "torch" && gpu.libraries.at(gpu.library).prefill.start > 0 &&
           shape.causal && shape.qk_dim == shape.v_dim;
}

double seconds(const Gpu& gpu, const AttentionCall& call) {
    const AttentionShape& shape = call.shape;
    if (call.backward) return attention_backward_seconds(gpu, shape);
    if (!has_own_kernel(gpu, shape)) return attention_forward_seconds(gpu, shape);
    PrefillCall prefill;
    prefill.batch = shape.batch;
    prefill.tokens = shape.queries;
    prefill.context = shape.keys;
    prefill.heads = shape.heads;
    prefill.kv_heads = shape.kv_heads;
    prefill.head_dim = shape.qk_dim;
    prefill.window = shape.window;
    return prefill_attention(gpu, gpu.libraries.at(gpu.library).prefill, prefill).seconds;
}

double seconds(const Gpu& gpu, const NormCall& call) {
    Traffic traffic = norm_traffic(gpu, call.rows, call.width, Norm::rms);
    if (call.backward) traffic.read *= 2;
    return stream_seconds(gpu, traffic);
}

double seconds(const Gpu& gpu, const RowAdd& add) {
    return scatter_add_seconds(gpu, add.rows, add.width);
}

/// One after another, as the card runs them.
class Pipeline {
  public:
    Pipeline(const Gpu& gpu, bool eager)
        : gpu_(gpu), launch_(eager ? gpu.overheads.eager_launch : 0) {}

    void run(Part part, const std::vector<Kernel>& kernels) {
        for (const Kernel& kernel : kernels) {
            issued_ += launch_;
            const Ps wait = std::max<Ps>(0, issued_ - end_);
            const Ps time = to_ps(kernel_seconds(gpu_, kernel));
            end_ += wait + time;
            spent_.host += wait;
            spent_.kernels[static_cast<std::size_t>(part)] += time;
        }
    }

    const BlockTime& spent() const { return spent_; }

  private:
    const Gpu& gpu_;
    Ps launch_;
    Ps issued_ = 0;
    Ps end_ = 0;
    BlockTime spent_;
};

}  // namespace

double kernel_seconds(const Gpu& gpu, const Kernel& kernel) {
    return std::visit([&](const auto& one) { return seconds(gpu, one); }, kernel);
}

Ps weight_gradients_time(const Gpu& gpu, const Operations& operations) {
    Ps sum = 0;
    for (const Operation& one : operations) {
        const bool matrix =
            one.backward.size() == 2 && std::holds_alternative<GemmShape>(one.backward[1]);
        if (matrix) sum += to_ps(kernel_seconds(gpu, one.backward[1]));
    }
    return sum;
}

BlockTime block_time(const Gpu& gpu, const Operations& operations, Pass pass, bool eager) {
    Pipeline pipeline(gpu, eager);
    if (pass == Pass::forward) {
        for (const Operation& one : operations) pipeline.run(one.part, one.forward);
    } else {
        for (auto one = operations.rbegin(); one != operations.rend(); ++one)
            pipeline.run(one->part, one->backward);
    }
    return pipeline.spent();
}

}  // namespace moehub
