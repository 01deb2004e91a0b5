/// Simulated layers as a trace that the Perfetto UI and Chrome open: trace events in JSON.
///
/// Every GPU and switch of a layer is a process, named "SYSTEM · gpu 3". Kernels are slices, a
/// thread for each name; SMs by kernel, busy links and what units of hubs and switches handled are
/// counters; a row that was followed has a thread on every GPU and switch that it passes, a slice
/// for each step there, and a flow through all of them. The file says in "otherData" what was
/// sampled.
#pragma once
#include <moehub/layer.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace moehub {

struct TracedLayer {
    std::string name;  ///< system's name, perhaps with a sub-layer's
    const LayerResult* result = nullptr;
};

struct Trace {
    std::string json;
    std::int64_t events = 0;
    std::int64_t rows = 0;   ///< rows that were followed
    std::int64_t every = 1;  ///< one of so many
    int joined = 1;          ///< bins of a counter that were made one, so that the file stays small
};

/// The trace of layers whose timelines were recorded, with at most about `most_events` events of
/// counters: bins are joined in pairs until there are no more.
Trace perfetto_trace(const std::vector<TracedLayer>& layers, std::int64_t most_events = 300'000);

/// "trace: one row of 1,025 followed, 23,456 events, 3.2 MB".
std::string trace_line(const Trace& trace);

}  // namespace moehub
