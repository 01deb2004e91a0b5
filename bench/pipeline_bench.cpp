// How fast a pipeline's schedule is run, on one core: a search asks for a million of them.
//   build/bench/bench/moehub_bench --benchmark_filter=pipeline --benchmark_repetitions=5
#include "base/rng.hpp"
#include "plan/pipeline/pipeline.hpp"

#include <benchmark/benchmark.h>

namespace moehub {
namespace {

using Schedule = PipelineInput::Schedule;

/// 16 stages; arguments: pieces, micro-batches, 1 for uneven pieces with sends.
void pipeline(benchmark::State& state, Schedule schedule, double saving) {
    PipelineInput input;
    input.schedule = schedule;
    input.stages = 16;
    input.pieces = static_cast<int>(state.range(0));
    input.micro_batches = state.range(1);
    const bool uneven = state.range(2) != 0;
    input.send = uneven ? 0.02 : 0;
    Rng rng(1);
    for (int i = 0; i < input.stages * input.pieces; ++i) {
        const double forward = uneven ? 0.9 + 0.2 * rng.uniform() : 1.0;
        input.times.push_back({forward, 2 * forward, 0.9 * forward, 3 * forward * (1 - saving)});
    }
    for (auto _ : state) benchmark::DoNotOptimize(run_pipeline(input));
}
BENCHMARK_CAPTURE(pipeline, 1f1b, Schedule::one_f_one_b, 0.0)
    ->ArgsProduct({{1, 2, 4}, {64, 4096}, {0, 1}})
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(pipeline, 1f1b_overlap, Schedule::one_f_one_b, 0.2)
    ->ArgsProduct({{1, 2, 4}, {64, 4096}, {0, 1}})
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(pipeline, dualpipe, Schedule::dualpipe, 0.2)
    ->ArgsProduct({{1}, {64, 4096}, {0, 1}})
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace moehub
