// Rings: every GPU takes all steps at the same pace, that of the slowest link or of the way round
// divided by the steps of it, and nodes are alike. As many steps as a node has GPUs cross one NIC
// on whatever way through the ring, so with as large parts a few nodes and k of those steps tell
//
//     time = start + (time of k steps − start) · steps / k.
//
// Waves: once the pipeline is full each takes as long as the one before, so
//
//     time = time of 2m waves + (time of 2m − time of m) · (waves − 2m) / m.
#include "sim/collective/nccl.hpp"

#include <cmath>

#include <fmt/format.h>

namespace moehub::sim {
namespace {

constexpr double kMostParts = 2e6;       // of rings, over all GPUs
constexpr double kMostPipelined = 80e9;  // through all GPUs' pipelines
constexpr Bytes kLongTrain = 1 << 19;    // of a ring's parts, often a megabyte each
constexpr Bytes kWavesBytes = 1 << 30;   // about, that are enough
constexpr Bytes kCollnetUnit = 1 << 26;  // whole chunks of every chain

PartOfCall whole_call(const Collective& what) {
    const CollectiveCall call{what.bytes, what.algorithm, what.element};
    return {[=](Communicator& all, GpuId gpu) { return run_call(all, gpu, what.op, call); }};
}

PartOfCall ring_call(const NcclCall& call, Bytes train = 0) {
    return {[=](Communicator& all, GpuId gpu) { return protocol_ring(all, gpu, call); }, train};
}

/// What `more` of `unit` add to two results that differ by one.
CollectiveResult counted_on(const CollectiveResult& half, CollectiveResult full, double more) {
    const auto add = [&](auto& value, auto before) {
        value += static_cast<std::remove_reference_t<decltype(value)>>(
            std::llround(static_cast<double>(value - before) * more));
    };
    add(full.time, half.time);
    add(full.bytes_up, half.bytes_up);
    add(full.bytes_down, half.bytes_down);
    add(full.packets, half.packets);
    full.events += half.events;
    return full;
}

/// As few nodes as have so many steps, two at least.
Machine few_nodes_of(const Machine& machine, std::uint32_t rounds, std::uint32_t steps) {
    Machine few = machine;
    for (few.nodes = 2; rounds * static_cast<std::uint32_t>(few.gpus() - 1) < steps;) ++few.nodes;
    return few;
}

struct LongCall {
    const Machine& machine;
    const Collective& what;
    const CallOptions& options;
};

CollectiveResult ring_by_steps(const LongCall& long_call, Protocol protocol, const RunPart& run) {
    const Machine& machine = long_call.machine;
    const Collective& what = long_call.what;
    const auto n = static_cast<std::uint32_t>(what.gpus);
    const std::uint32_t rounds = what.op == Op::all_reduce ? 2 : 1;
    const std::uint32_t steps = rounds * (n - 1);
    const auto node = static_cast<std::uint32_t>(machine.gpus_per_node);
    const double parts = static_cast<double>(steps) * n * machine.nccl.net_rings;
    const std::uint32_t few = node * ((long_call.options.few_steps + node - 1) / node);
    NcclCall call{what.op, what.bytes, what.element, protocol};
    if (parts <= long_call.options.whole * kMostParts || steps <= few)
        return run(machine, ring_call(call));
    const Machine nodes = few_nodes_of(machine, rounds, few);
    call.bytes = part(what.bytes, n - 1, n) * nodes.gpus();
    call.most_steps = few;
    const CollectiveResult some = run(nodes, ring_call(call, kLongTrain));
    CollectiveResult none;
    none.time = machine.nccl.start + machine.nccl.blocks + machine.nccl.net_start;
    CollectiveResult result = counted_on(none, some, static_cast<double>(steps) / few - 1);
    const auto of_all_nodes = [&](auto& value) { value = value * machine.nodes / nodes.nodes; };
    of_all_nodes(result.bytes_up);
    of_all_nodes(result.bytes_down);
    of_all_nodes(result.packets);
    result.part =
        fmt::format("{} of {} steps on {} of {} nodes", few, steps, nodes.nodes, machine.nodes);
    return result;
}

CollectiveResult pipeline_by_waves(const LongCall& long_call, Bytes wave, const RunPart& run) {
    const Machine& machine = long_call.machine;
    const Collective& what = long_call.what;
    const Bytes waves = what.bytes / wave;
    const Bytes half = std::clamp<Bytes>(kWavesBytes / 2 / wave, 4, 16);
    if (static_cast<double>(what.bytes) * what.gpus < long_call.options.whole * kMostPipelined ||
        waves <= 2 * half)
        return run(machine, whole_call(what));
    const auto run_waves = [&](Bytes many) {
        const CollectiveCall call{what.bytes - (waves - many) * wave, what.algorithm, what.element,
                                  what.bytes};
        return run(machine, {[=](Communicator& all, GpuId gpu) {
                       return run_call(all, gpu, what.op, call);
                   }});
    };
    const double more = static_cast<double>(waves - 2 * half) / static_cast<double>(half);
    CollectiveResult result = counted_on(run_waves(half), run_waves(2 * half), more);
    result.part = fmt::format("{} of {} waves", 2 * half, waves);
    return result;
}

}  // namespace

CollectiveResult run_long_call(const Machine& machine, const Collective& what,
                               const CallOptions& options, const RunPart& run) {
    const LongCall long_call{machine, what, options};
    const bool several = machine.nodes > 1;
    const auto heads = static_cast<std::uint32_t>(several ? machine.gpus_per_node : what.gpus);
    const Bytes wave = waves_of(machine, heads, what.bytes).bytes * heads;
    if (what.algorithm == Algorithm::nvls_tree) return pipeline_by_waves(long_call, wave, run);
    if (what.algorithm == Algorithm::collnet)
        return pipeline_by_waves(long_call, kCollnetUnit, run);
    const bool chosen = what.algorithm == Algorithm::automatic && what.op != Op::all_to_all &&
                        (!several || heads > 1);
    if (!chosen) return run(machine, whole_call(what));
    const auto gpus = static_cast<std::uint32_t>(what.gpus);
    const NcclChoice choice = choose(machine, gpus, {what.op, what.bytes, what.element});
    if (choice.in_switch && !options.protocol) return pipeline_by_waves(long_call, wave, run);
    if (!several) return run(machine, whole_call(what));
    return ring_by_steps(long_call, options.protocol.value_or(choice.protocol), run);
}

}  // namespace moehub::sim
