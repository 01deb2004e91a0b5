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

#include <moehub/collective.hpp>
#include <moehub/error.hpp>

#include <cmath>
#include <functional>

#include <fmt/format.h>

namespace moehub {
namespace {

using sim::Algorithm;
using sim::Op;

constexpr Bytes kMostBytes = Bytes{1} << 40;

void refuse_tree(const Machine& machine, const Collective& what) {
    if (what.op != Op::all_reduce) throw InputError("nvls-tree is an algorithm of all_reduce only");
    if (!machine.in_switch || machine.nodes < 2 || machine.gpus_per_node < 2 ||
        machine.link.ack_flits == 0) {
        throw InputError(fmt::format(
            "{} cannot run nvls-tree: it needs two nodes or more, of several GPUs each, whose "
            "switches multicast and reduce",
            machine.name));
    }
}

void refuse_collnet(const Machine& machine, const Collective& what) {
    if (what.op != Op::all_reduce) throw InputError("collnet is an algorithm of all_reduce only");
    if (!machine.sharp || machine.nodes < 2 || machine.gpus_per_node < 2) {
        throw InputError(fmt::format(
            "{} cannot run collnet: it needs sharp = true (leaves and spines that add up) and two "
            "nodes or more, of several GPUs each",
            machine.name));
    }
}

void refuse_if_impossible(const Machine& machine, const Collective& what) {
    if (what.bytes <= 0 || what.bytes > kMostBytes)
        throw InputError(fmt::format("bytes: found {}, allowed 1 to {}", what.bytes, kMostBytes));
    if (what.gpus < 2)
        throw InputError(fmt::format("a collective needs at least 2 GPUs, found {}", what.gpus));
    if (what.gpus != machine.gpus()) {
        throw InputError(fmt::format("{} has {} GPUs, the collective asks for {}", machine.name,
                                     machine.gpus(), what.gpus));
    }
    if (what.op == Op::all_to_all && what.algorithm != Algorithm::direct &&
        what.algorithm != Algorithm::automatic)
        throw InputError("all_to_all runs with the direct algorithm or auto only");
    if (what.op != Op::all_reduce && what.algorithm == Algorithm::one_shot)
        throw InputError("one-shot is an algorithm of all_reduce only");
    if (what.algorithm == Algorithm::one_shot && machine.nodes > 1) {
        throw InputError(fmt::format(
            "{} cannot run one-shot: it needs one node, whose GPUs store into each other's memory",
            machine.name));
    }
    if (what.algorithm == Algorithm::nvls_tree) refuse_tree(machine, what);
    if (what.algorithm == Algorithm::collnet) refuse_collnet(machine, what);
    if (what.algorithm != Algorithm::nvls) return;
    if (!machine.in_switch || machine.nodes > 1) {
        throw InputError(
            fmt::format("{} cannot run nvls: it needs one node whose switches multicast and reduce",
                        machine.name));
    }
    if (machine.link.ack_flits == 0) {
        throw InputError(
            fmt::format("{} cannot run nvls: link.ack_flits is 0, and switches merge "
                        "acknowledgements",
                        machine.name));
    }
}

double bus_bandwidth(const Collective& what, Ps time) {
    const double n = what.gpus;
    const double factor = (what.op == Op::all_reduce ? 2.0 : 1.0) * (n - 1) / n;
    return factor * static_cast<double>(what.bytes) / to_seconds(time);
}

std::string chosen_for(const Machine& machine, const Collective& what) {
    if (what.algorithm != Algorithm::automatic) return "";
    if (machine.nodes > 1 && machine.gpus_per_node == 1)
        return what.op == Op::all_to_all ? "direct" : "ring";
    const auto gpus = static_cast<std::uint32_t>(what.gpus);
    const sim::NcclChoice choice = sim::choose(machine, gpus, {what.op, what.bytes, what.element});
    return name_of(choice, what.op, machine.nodes > 1);
}

}  // namespace

namespace sim {
namespace {

Process run(Communicator& all, GpuId gpu, Op op, CollectiveCall call) {
    if (op == Op::all_to_all && call.algorithm != Algorithm::automatic)
        return direct(all, gpu, op, call.bytes);
    switch (call.algorithm) {
        case Algorithm::direct:
            return direct(all, gpu, op, call.bytes);
        case Algorithm::ring:
            return ring(all, gpu, op, call.bytes);
        case Algorithm::automatic:
            return nccl(all, gpu,
                        {op, call.bytes, call.element, Protocol::simple, call.part_of, 0});
        case Algorithm::one_shot:
            return one_shot(all, gpu, call.bytes);
        case Algorithm::nvls_tree:
            return nvls_tree(all, gpu, call.bytes, call.part_of);
        case Algorithm::collnet:
            return collnet_chain(all, gpu, call.bytes);
        case Algorithm::nvls:
            break;
    }
    return in_switch(all, gpu, op, call.bytes);
}

}  // namespace

Process all_to_all(Communicator& all, GpuId gpu, CollectiveCall call) {
    return run(all, gpu, Op::all_to_all, call);
}

Process all_gather(Communicator& all, GpuId gpu, CollectiveCall call) {
    return run(all, gpu, Op::all_gather, call);
}

Process reduce_scatter(Communicator& all, GpuId gpu, CollectiveCall call) {
    return run(all, gpu, Op::reduce_scatter, call);
}

Process all_reduce(Communicator& all, GpuId gpu, CollectiveCall call) {
    return run(all, gpu, Op::all_reduce, call);
}

namespace {

constexpr Bytes kNicTrain = 16384;  // a NIC's train of several packets: long calls have too many
constexpr double kMostParts = 2e6;  // parts of the longest whole rings, over all GPUs
constexpr double kMostPipelined = 80e9;  // bytes of the longest whole pipelines, over all GPUs
constexpr Bytes kLongTrain = 1 << 19;    // bytes of a ring's train; parts are often a megabyte
constexpr Bytes kWavesBytes = 1 << 30;   // bytes of waves that are enough, about
constexpr Bytes kCollnetUnit = 1 << 26;  // bytes in whole chunks of every chain

/// What every GPU runs, and how many bytes at least travel as one.
struct PartOfCall {
    std::function<Process(Communicator&, GpuId)> program;
    Bytes train = 0;
};

Process run_one(Communicator& all, GpuId gpu, Process program, Ps& end) {
    co_await program;
    end = std::max(end, all.endpoint(gpu).now());
}

CollectiveResult run_part(const Machine& machine, const Collective& what, const PartOfCall& part) {
    const bool plain = what.algorithm == Algorithm::direct || what.algorithm == Algorithm::ring;
    FabricOptions options;
    options.grain = what.grain;
    options.train = std::max(what.train, part.train);
    options.nic_train = plain ? 0 : std::max(kNicTrain, options.train / 8);
    Fabric fabric(machine, options);
    // All start together, and the library's own start-up time is measured with what it does then.
    Communicator all(fabric, "a collective", false);
    Ps end = 0;
    for (const GpuId gpu : fabric.all_gpus())
        fabric.gpu(gpu).spawn("collective", run_one(all, gpu, part.program(all, gpu), end));
    fabric.run();
    CollectiveResult result;
    result.time = end;
    result.bytes_up = fabric.wire_bytes_up();
    result.bytes_down = fabric.wire_bytes_down();
    result.packets = fabric.packets_received();
    result.events = fabric.events();
    return result;
}

PartOfCall bytes_of_call(const Collective& what, Bytes bytes) {
    const CollectiveCall call{bytes, what.algorithm, what.element, what.bytes};
    return {[=](Communicator& all, GpuId gpu) { return run(all, gpu, what.op, call); }};
}

PartOfCall ring_call(const NcclCall& call, Bytes train = 0) {
    return {[=](Communicator& all, GpuId gpu) { return protocol_ring(all, gpu, call); }, train};
}

/// The larger of two results, one unit apart, with `more` times their difference added.
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

/// The machine with as few nodes as give rings so many steps, two at least.
Machine few_nodes_of(const Machine& machine, std::uint32_t rounds, std::uint32_t steps) {
    Machine few = machine;
    for (few.nodes = 2; rounds * static_cast<std::uint32_t>(few.gpus() - 1) < steps;) ++few.nodes;
    return few;
}

CollectiveResult ring_by_steps(const Machine& machine, const Collective& what,
                               const CallOptions& options, Protocol protocol) {
    const auto n = static_cast<std::uint32_t>(what.gpus);
    const std::uint32_t rounds = what.op == Op::all_reduce ? 2 : 1;
    const std::uint32_t steps = rounds * (n - 1);
    const auto node = static_cast<std::uint32_t>(machine.gpus_per_node);
    const double parts = static_cast<double>(steps) * n * machine.nccl.net_rings;
    const std::uint32_t few = node * ((options.few_steps + node - 1) / node);
    NcclCall call{what.op, what.bytes, what.element, protocol};
    if (parts <= options.whole * kMostParts || steps <= few)
        return run_part(machine, what, ring_call(call));
    const Machine nodes = few_nodes_of(machine, rounds, few);
    call.bytes = part(what.bytes, n - 1, n) * nodes.gpus();
    call.most_steps = few;
    const CollectiveResult some = run_part(nodes, what, ring_call(call, kLongTrain));
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

CollectiveResult pipeline_by_waves(const Machine& machine, const Collective& what,
                                   const CallOptions& options, Bytes wave) {
    const Bytes waves = what.bytes / wave;
    const Bytes half = std::clamp<Bytes>(kWavesBytes / 2 / wave, 4, 16);
    if (static_cast<double>(what.bytes) * what.gpus < options.whole * kMostPipelined ||
        waves <= 2 * half)
        return run_part(machine, what, bytes_of_call(what, what.bytes));
    const auto run_waves = [&](Bytes many) {
        return run_part(machine, what, bytes_of_call(what, what.bytes - (waves - many) * wave));
    };
    const double more = static_cast<double>(waves - 2 * half) / static_cast<double>(half);
    CollectiveResult result = counted_on(run_waves(half), run_waves(2 * half), more);
    result.part = fmt::format("{} of {} waves", 2 * half, waves);
    return result;
}

CollectiveResult run_long_call(const Machine& machine, const Collective& what,
                               const CallOptions& options) {
    const bool several = machine.nodes > 1;
    const auto heads = static_cast<std::uint32_t>(several ? machine.gpus_per_node : what.gpus);
    const Bytes wave = waves_of(machine, heads, what.bytes).bytes * heads;
    if (what.algorithm == Algorithm::nvls_tree)
        return pipeline_by_waves(machine, what, options, wave);
    if (what.algorithm == Algorithm::collnet)
        return pipeline_by_waves(machine, what, options, kCollnetUnit);
    const bool chosen = what.algorithm == Algorithm::automatic && what.op != Op::all_to_all &&
                        (!several || heads > 1);
    if (!chosen) return run_part(machine, what, bytes_of_call(what, what.bytes));
    const auto gpus = static_cast<std::uint32_t>(what.gpus);
    const NcclChoice choice = choose(machine, gpus, {what.op, what.bytes, what.element});
    if (choice.in_switch && !options.protocol)
        return pipeline_by_waves(machine, what, options, wave);
    if (!several) return run_part(machine, what, bytes_of_call(what, what.bytes));
    return ring_by_steps(machine, what, options, options.protocol.value_or(choice.protocol));
}

}  // namespace

CollectiveResult run_collective(const Machine& machine, const Collective& collective,
                                const CallOptions& options) {
    check(machine);
    refuse_if_impossible(machine, collective);
    CollectiveResult result = run_long_call(machine, collective, options);
    result.bus_bandwidth = bus_bandwidth(collective, result.time);
    result.chosen = chosen_for(machine, collective);
    return result;
}

}  // namespace sim

CollectiveResult run_collective(const Machine& machine, const Collective& collective) {
    return sim::run_collective(machine, collective, sim::CallOptions{});
}

}  // namespace moehub
