#include "sim/collective/run.hpp"

#include <moehub/collective.hpp>
#include <moehub/error.hpp>

#include <fmt/format.h>

namespace moehub {
namespace {

using Op = Collective::Op;
using Algorithm = Collective::Algorithm;

constexpr Bytes kMostBytes = Bytes{1} << 40;

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
    if (what.op == Op::all_to_all && what.algorithm != Algorithm::direct) {
        throw InputError("all_to_all runs with the direct algorithm only");
    }
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

void spawn(sim::CollectiveRun& run, sim::Endpoint& gpu) {
    switch (run.what.algorithm) {
        case Algorithm::direct:
            return spawn_direct(run, gpu);
        case Algorithm::ring:
            return spawn_ring(run, gpu);
        case Algorithm::nvls:
            return spawn_nvls(run, gpu);
    }
}

}  // namespace

CollectiveResult run_collective(const Machine& machine, const Collective& collective) {
    check(machine);
    refuse_if_impossible(machine, collective);
    sim::FabricOptions options;
    options.grain = collective.grain;
    options.train = collective.train;
    sim::Fabric fabric(machine, options);
    sim::CollectiveRun run{collective, machine};
    for (std::uint32_t i = 0; i < run.gpus(); ++i) spawn(run, fabric.gpu(i));
    fabric.run();

    CollectiveResult result;
    result.time = run.end;
    result.bus_bandwidth = bus_bandwidth(collective, run.end);
    result.bytes_up = fabric.wire_bytes_up();
    result.bytes_down = fabric.wire_bytes_down();
    result.packets = fabric.packets_received();
    result.events = fabric.events();
    return result;
}

}  // namespace moehub
