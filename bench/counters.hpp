/// What every benchmark reports of a simulation: rates per second of one core, and memory.
#pragma once
#include <moehub/units.hpp>

#include <benchmark/benchmark.h>
#include <sys/resource.h>

namespace moehub {

template <class Result>
void report(benchmark::State& state, const Result& result) {
    const auto rate = [](std::int64_t count) {
        return benchmark::Counter(static_cast<double>(count),
                                  benchmark::Counter::kIsIterationInvariantRate);
    };
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    state.counters["packets/s"] = rate(result.packets);
    state.counters["events/s"] = rate(result.events);
    state.counters["simulated_us"] = to_us(result.time);
    state.counters["peak_MB"] = static_cast<double>(usage.ru_maxrss) / 1024;  // so far
}

}  // namespace moehub
