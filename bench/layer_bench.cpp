// How fast MoE layers are simulated, on one core.
//   build/bench/bench/moehub_bench --benchmark_filter=layer --benchmark_repetitions=5
#include "counters.hpp"

#include <moehub/layer.hpp>
#include <moehub/presets.hpp>

namespace moehub {
namespace {

struct What {
    const char* machine;
    const char* model;
    int gpus;
    std::int64_t tokens;  ///< in total
    const char* system;
    Grain grain;
};

void layer(benchmark::State& state, const What& what) {
    const Machine machine = with_gpus(load_machine(what.machine), what.gpus);
    const Model model = load_model(what.model);
    const Routing routing = make_routing({}, model, what.tokens);
    const Placement placement = contiguous_placement(model.experts, what.gpus);
    LayerOptions options;
    options.grain = what.grain;
    LayerResult result;
    for (auto _ : state) {
        result = simulate_layer({machine, model, routing, placement}, what.system, options);
        benchmark::DoNotOptimize(result.time);
    }
    report(state, result);
}

// Smallest first: peak_MB is that of the process so far.
BENCHMARK_CAPTURE(layer, mixtral_8192_tokens_8_gpus_row,
                  What{"dgx-h800", "mixtral-8x7b", 8, 8192, "moe-hub", Grain::row})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(layer, mixtral_8192_tokens_8_gpus_packet,
                  What{"dgx-h800", "mixtral-8x7b", 8, 8192, "moe-hub", Grain::packet})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(layer, deepseek_v3_262144_tokens_32_gpus_row,
                  What{"gh200-nvl32", "deepseek-v3", 32, 262144, "moe-hub", Grain::row})
    ->Unit(benchmark::kMillisecond)
    ->Iterations(1);

}  // namespace
}  // namespace moehub
