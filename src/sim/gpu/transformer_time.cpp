#include "sim/gpu/transformer.hpp"
#include "sim/kernels/kernels.hpp"

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
    const PrefillCall prefill{.batch = shape.batch,
                              .tokens = shape.queries,
                              .context = shape.keys,
                              .heads = shape.heads,
                              .kv_heads = shape.kv_heads,
                              .head_dim = shape.qk_dim,
                              .window = shape.window};
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
    const Ps launch = eager ? gpu.overheads.eager_launch : 0;
    Ps issued = 0;
    Ps end = 0;
    BlockTime spent;
    const auto run = [&](Part part, const std::vector<Kernel>& kernels) {
        for (const Kernel& kernel : kernels) {
            issued += launch;
            const Ps wait = std::max<Ps>(0, issued - end);
            const Ps time = to_ps(kernel_seconds(gpu, kernel));
            end += wait + time;
            spent.host += wait;
            spent.kernels[static_cast<std::size_t>(part)] += time;
        }
    };
    if (pass == Pass::forward)
        for (const Operation& one : operations) run(one.part, one.forward);
    else
        for (auto one = operations.rbegin(); one != operations.rend(); ++one)
            run(one->part, one->backward);
    return spent;
}

}  // namespace moehub
