// How fast experts are placed, on one core.
//   build/bench/bench/moehub_bench --benchmark_filter=place --benchmark_repetitions=5
#include "base/rng.hpp"
#include "place/assignment.hpp"
#include "place/eplb.hpp"

#include <benchmark/benchmark.h>

namespace moehub {
namespace {

Matrix random_matrix(int rows, int columns) {
    Matrix matrix(rows, columns);
    Rng rng(1);
    for (double& value : matrix.at_) value = static_cast<double>(rng.below(100'000));
    return matrix;
}

/// DeepSeek-V3: 58 layers of 256 experts, 32 copies more, on 32 GPUs.
void place_eplb(benchmark::State& state, int nodes) {
    const Matrix weights = random_matrix(58, 256);
    for (auto _ : state)
        benchmark::DoNotOptimize(
            eplb(weights, {.slots = 288, .groups = 8, .nodes = nodes, .gpus = 32}));
}
BENCHMARK_CAPTURE(place_eplb, deepseek_v3_4_nodes, 4)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(place_eplb, deepseek_v3_8_nodes, 8)->Unit(benchmark::kMillisecond);

void place_assignment(benchmark::State& state) {
    const auto size = static_cast<int>(state.range(0));
    const Matrix gain = random_matrix(size, size);
    for (auto _ : state) benchmark::DoNotOptimize(best_assignment(gain));
}
BENCHMARK(place_assignment)->Arg(8)->Arg(32)->Arg(256)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace moehub
