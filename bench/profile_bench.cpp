// How fast recorded routing is read and counted: 100,000 tokens of 58 layers, top-8 of 256.
//   cmake --preset bench && ninja -C build/bench
//   build/bench/bench/moehub_bench --benchmark_filter=read_profile
#include <moehub/profile.hpp>

#include <filesystem>
#include <fstream>
#include <string>

#include <benchmark/benchmark.h>

namespace moehub {
namespace {

constexpr int kTokens = 100000, kLayers = 58, kTopK = 8;

/// Ids that are distinct within a token and spread over all experts.
template <class Value>
std::string write_ids(const char* dtype) {
    const auto path =
        std::filesystem::temp_directory_path() / ("moehub_profile_bench_" + std::string(dtype + 1));
    std::string header = "{'descr': '" + std::string(dtype) +
                         "', 'fortran_order': False, 'shape': (" + std::to_string(kTokens) + ", " +
                         std::to_string(kLayers) + ", " + std::to_string(kTopK) + ")}\n";
    std::vector<Value> ids;
    ids.reserve(std::size_t{kTokens} * kLayers * kTopK);
    std::uint32_t state = 1;
    for (int row = 0; row < kTokens * kLayers; ++row) {
        state = state * 1664525u + 1013904223u;
        for (std::uint32_t slot = 0; slot < kTopK; ++slot)
            ids.push_back(static_cast<Value>((state >> 24) / 8 + slot * 32));
    }
    std::ofstream file(path.string() + ".npy", std::ios::binary);
    file.write("\x93NUMPY\1\0", 8);
    file.put(static_cast<char>(header.size() & 0xff)).put(static_cast<char>(header.size() >> 8));
    file << header;
    file.write(reinterpret_cast<const char*>(ids.data()),
               static_cast<std::streamsize>(ids.size() * sizeof(Value)));
    return path.string() + ".npy";
}

template <class Value>
void read_ids(benchmark::State& state, const char* dtype) {
    const std::string path = write_ids<Value>(dtype);
    for (auto _ : state) {
        const Profile profile = read_profile(parse_profile_source(path));
        benchmark::DoNotOptimize(profile.counts.data());
    }
    state.counters["tokens/s"] =
        benchmark::Counter(kTokens, benchmark::Counter::kIsIterationInvariantRate);
    std::filesystem::remove(path);
}

void read_profile_uint8(benchmark::State& state) {
    read_ids<std::uint8_t>(state, "|u1");
}
void read_profile_int32(benchmark::State& state) {
    read_ids<std::int32_t>(state, "<i4");
}
BENCHMARK(read_profile_uint8)->Unit(benchmark::kMillisecond);
BENCHMARK(read_profile_int32)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace moehub
