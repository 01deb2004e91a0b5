#include "sim/collective/nccl.hpp"

#include <moehub/collective.hpp>
#include <moehub/error.hpp>

#include <fmt/format.h>

namespace moehub {
namespace {

using Op = Collective::Op;
using Algorithm = Collective::Algorithm;

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
    if (what.bytes <= 0 || what.bytes > kMostBytes) {
        throw InputError(fmt::format("bytes: found {}, allowed 1 to {}", what.bytes, kMostBytes));
    }
    if (what.gpus < 2) {
        throw InputError(fmt::format("a collective needs at least 2 GPUs, found {}", what.gpus));
    }
    if (what.gpus != machine.gpus()) {
        throw InputError(fmt::format("{} has {} GPUs, the collective asks for {}", machine.name,
                                     machine.gpus(), what.gpus));
    }
    if (what.op == Op::all_to_all && what.algorithm != Algorithm::direct &&
        what.algorithm != Algorithm::automatic) {
        throw InputError("all_to_all runs with the direct algorithm or auto only");
    }
    if (what.op != Op::all_reduce && what.algorithm == Algorithm::one_shot) {
        throw InputError("one-shot is an algorithm of all_reduce only");
    }
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

sim::Process run_one(sim::Communicator& all, sim::GpuId gpu, sim::Program program, Ps& end) {
    co_await program(all, gpu);
    end = std::max(end, all.endpoint(gpu).now());
}

}  // namespace

namespace sim {
namespace {

Process run(Communicator& all, GpuId gpu, Op op, CollectiveCall call) {
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
    if (call.algorithm == Algorithm::automatic) return run(all, gpu, Op::all_to_all, call);
    return direct(all, gpu, Op::all_to_all, call.bytes);
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

Process run_call(Communicator& all, GpuId gpu, Op op, CollectiveCall call) {
    return op == Op::all_to_all ? all_to_all(all, gpu, call) : run(all, gpu, op, call);
}

}  // namespace sim

namespace {

constexpr Bytes kNicTrain = 16384;  // several packets: long calls have hundreds of millions

std::string chosen_for(const Machine& machine, const Collective& what) {
    if (what.algorithm != Algorithm::automatic) return "";
    if (machine.nodes > 1 && machine.gpus_per_node == 1)
        return what.op == Op::all_to_all ? "direct" : "ring";
    const auto gpus = static_cast<std::uint32_t>(what.gpus);
    const sim::NcclChoice choice = sim::choose(machine, gpus, {what.op, what.bytes, what.element});
    return name_of(choice, what.op, machine.nodes > 1);
}

CollectiveResult run_part(const Machine& machine, const Collective& what,
                          const sim::PartOfCall& part) {
    const bool plain = what.algorithm == Algorithm::direct || what.algorithm == Algorithm::ring;
    sim::FabricOptions options;
    options.grain = what.grain;
    options.train = std::max(what.train, part.train);
    options.nic_train = plain ? 0 : std::max(kNicTrain, options.train / 8);
    sim::Fabric fabric(machine, options);
    // All start together, and the library's own start-up time is measured with what it does then.
    sim::Communicator all(fabric, "a collective", false);
    Ps end = 0;
    for (std::uint32_t i = 0; i < all.size(); ++i) {
        fabric.gpu(i).spawn("collective",
                            run_one(all, static_cast<sim::GpuId>(i), part.program, end));
    }
    fabric.run();
    CollectiveResult result;
    result.time = end;
    result.bytes_up = fabric.wire_bytes_up();
    result.bytes_down = fabric.wire_bytes_down();
    result.packets = fabric.packets_received();
    result.events = fabric.events();
    return result;
}

}  // namespace

CollectiveResult run_collective(const Machine& machine, const Collective& collective) {
    return sim::run_collective(machine, collective, sim::CallOptions{});
}

CollectiveResult sim::run_collective(const Machine& machine, const Collective& collective,
                                     const CallOptions& options) {
    check(machine);
    refuse_if_impossible(machine, collective);
    const auto run = [&](const Machine& of, const sim::PartOfCall& part) {
        return run_part(of, collective, part);
    };
    CollectiveResult result = sim::run_long_call(machine, collective, options, run);
    result.bus_bandwidth = bus_bandwidth(collective, result.time);
    result.chosen = chosen_for(machine, collective);
    return result;
}

}  // namespace moehub
