// Predictions a second of kernels of serving engines: with no memory of earlier ones, and with a
// cache by shape.

#include <moehub/predict.hpp>
#include <moehub/presets.hpp>

#include <benchmark/benchmark.h>

namespace moehub {
namespace {

/// Shapes as a planner asks them: several sizes of a layer, all batch sizes.
std::vector<KernelCall> gemms() {
    std::vector<KernelCall> calls;
    for (std::int64_t m = 1; m <= 1024; ++m)
        for (const std::int64_t n : {2048, 7168})
            for (const std::int64_t k : {2048, 7168})
                calls.emplace_back(GemmCall{NumberFormat::bf16, m * 8, n, k});
    return calls;
}

void predict_gemms(benchmark::State& state, const std::string& name) {
    const Gpu gpu = load_gpu(name);
    const std::vector<KernelCall> calls = gemms();
    for (auto _ : state)
        for (const KernelCall& call : calls)
            benchmark::DoNotOptimize(predict_kernel(gpu, "trtllm", call));
    state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(calls.size()));
}
BENCHMARK_CAPTURE(predict_gemms, hopper, "h200-sxm")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(predict_gemms, blackwell, "b200")->Unit(benchmark::kMillisecond);

void cached_gemms(benchmark::State& state) {
    PredictionCache cache(load_gpu("b200"), "trtllm");
    const std::vector<KernelCall> calls = gemms();
    for (const KernelCall& call : calls) cache.seconds(call);
    for (auto _ : state)
        for (const KernelCall& call : calls) benchmark::DoNotOptimize(cache.seconds(call));
    state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(calls.size()));
}
BENCHMARK(cached_gemms)->Unit(benchmark::kMillisecond);

void predict_other(benchmark::State& state, const KernelCall& call) {
    const Gpu gpu = load_gpu("b200");
    for (auto _ : state) benchmark::DoNotOptimize(predict_kernel(gpu, "trtllm", call));
    state.SetItemsProcessed(state.iterations());
}
BENCHMARK_CAPTURE(predict_other, decode, DecodeCall{NumberFormat::bf16, 64, 4096, 64, 8, 128, 0});
BENCHMARK_CAPTURE(predict_other, mla_decode, MlaDecodeCall{NumberFormat::bf16, 1, 32768, 128});
BENCHMARK_CAPTURE(predict_other, moe_balanced,
                  MoeCall{NumberFormat::bf16, 4096, 7168, 2048, 8, 256, 1, 8});
BENCHMARK_CAPTURE(predict_other, moe_skewed,
                  MoeCall{NumberFormat::bf16, 4096, 7168, 2048, 8, 256, 1, 8, 1, 1, 1.2});

}  // namespace
}  // namespace moehub
