// How fast layouts are searched once communication is simulated, and how fast one is timed.
//   cmake --preset bench && ninja -C build/bench
//   build/bench/bench/moehub_bench --benchmark_filter=plan
#include <moehub/plan.hpp>
#include <moehub/presets.hpp>

#include <benchmark/benchmark.h>

namespace moehub {
namespace {

TrainingClock clock_of(const char* model, int gpus, std::int64_t batch) {
    TrainingRun run;
    run.model = load_model(model);
    run.machine = training_machine(load_machine("h100-cluster"), gpus);
    run.trainer = load_trainer("megatron-26.04");
    run.global_batch = batch;
    return TrainingClock(run);
}

void plan_search(benchmark::State& state) {
    const TrainingClock clock = clock_of("mixtral-8x22b", 128, 256);
    PlanOptions options;
    options.exact = false;
    double layouts = static_cast<double>(plan_training(clock, options).layouts);  // simulates
    for (auto _ : state) benchmark::DoNotOptimize(plan_training(clock, options));
    state.counters["layouts/s"] =
        benchmark::Counter(layouts, benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(plan_search)->Unit(benchmark::kMillisecond)->UseRealTime();

void plan_step(benchmark::State& state) {
    TrainingClock clock = clock_of("qwen3-235b-a22b", 256, 2048);
    const ParallelLayout layout = parse_parallel_layout("tp=2,pp=8,vpp=4,ep=32,overlap=1f1b");
    clock.step(layout);
    for (auto _ : state) benchmark::DoNotOptimize(clock.step(layout));
}
BENCHMARK(plan_step)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace moehub
