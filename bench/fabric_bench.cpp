// How fast the fabric simulates: packets and events per second of one core.
//   cmake --preset bench && ninja -C build/bench
//   build/bench/bench/moehub_bench --benchmark_repetitions=5
#include "counters.hpp"

#include <moehub/collective.hpp>
#include <moehub/presets.hpp>

namespace moehub {
namespace {

Collective collective(Collective::Op op, Collective::Algorithm algorithm, Bytes bytes,
                      Grain grain) {
    return {.op = op, .algorithm = algorithm, .bytes = bytes, .grain = grain};
}

void simulate(benchmark::State& state, const char* machine_name, int gpus, Collective what) {
    const Machine machine = with_gpus(load_machine(machine_name), gpus);
    what.gpus = gpus;
    CollectiveResult result;
    for (auto _ : state) {
        result = run_collective(machine, what);
        benchmark::DoNotOptimize(result.time);
    }
    report(state, result);
}

using Op = Collective::Op;
using Algorithm = Collective::Algorithm;
constexpr Bytes kMiB = 1 << 20;

// Smallest first: peak_MB is that of the process so far.
BENCHMARK_CAPTURE(simulate, all_to_all_8_gpus_64MiB_packet, "dgx-h100", 8,
                  collective(Op::all_to_all, Algorithm::direct, 64 * kMiB, Grain::packet))
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(simulate, all_to_all_8_gpus_64MiB_row, "dgx-h100", 8,
                  collective(Op::all_to_all, Algorithm::direct, 64 * kMiB, Grain::row))
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(simulate, all_reduce_nvls_8_gpus_64MiB_packet, "dgx-h100", 8,
                  collective(Op::all_reduce, Algorithm::nvls, 64 * kMiB, Grain::packet))
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(simulate, all_to_all_32_gpus_64MiB_packet, "gh200-nvl32", 32,
                  collective(Op::all_to_all, Algorithm::direct, 64 * kMiB, Grain::packet))
    ->Unit(benchmark::kMillisecond)
    ->Iterations(1);
BENCHMARK_CAPTURE(simulate, all_to_all_512_gpus_64MiB_row, "single-switch", 512,
                  collective(Op::all_to_all, Algorithm::direct, 64 * kMiB, Grain::row))
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace moehub
