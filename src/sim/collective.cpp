// Collectives as programs on the fabric.
//   direct: every GPU sends each peer its part at once.
//   ring:   n − 1 steps of bytes/n to the next GPU (all_reduce: twice), each handed over by
//   software. nvls:   in-switch: reduction loads of the GPU's slice and multicast stores of the
//   result, with a
//           bounded number of loads in flight.
#include "sim/fabric.hpp"

#include <moehub/collective.hpp>
#include <moehub/error.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace moehub {
namespace sim {
namespace {

using Op = Collective::Op;
using Algorithm = Collective::Algorithm;

constexpr Bytes kSwitchChunk = 32768;  // of an in-switch collective's pipeline

// Every GPU has these counters, in this order.
enum Counters : CounterId { kArrived, kAnswered, kLoaded };

struct Run {
    Collective what;
    CollectiveCosts costs;
    Ps end = 0;

    /// Part i of n of the buffer; the parts differ by at most one byte.
    Bytes part(std::uint32_t i) const {
        const auto n = static_cast<__int128>(what.gpus);
        const auto edge = [&](std::uint32_t j) {
            return static_cast<Bytes>(what.bytes * __int128{j} / n);
        };
        return edge(i + 1) - edge(i);
    }
    std::uint32_t gpus() const { return static_cast<std::uint32_t>(what.gpus); }
    bool reduces() const { return what.op == Op::all_reduce || what.op == Op::reduce_scatter; }
    bool gathers() const { return what.op == Op::all_reduce || what.op == Op::all_gather; }
};

void finish(Run& run, const Endpoint& gpu) {
    run.end = std::max(run.end, gpu.now());
}

/// One round of the direct algorithm: to every peer its part, or its own part to all of
/// them. Returns the number of transfers posted.
std::int64_t send_to_peers(Run& run, Endpoint& gpu, bool own_part) {
    std::int64_t sent = 0;
    for (std::uint32_t i = 1; i < run.gpus(); ++i) {
        const std::uint32_t peer = (gpu.id() + i) % run.gpus();
        const Bytes bytes = run.part(own_part ? gpu.id() : peer);
        if (bytes == 0) continue;
        Transfer transfer;
        transfer.dst = static_cast<GpuId>(peer);
        transfer.bytes = bytes;
        transfer.arrived = kArrived;
        transfer.answered = kAnswered;
        gpu.post(transfer);
        ++sent;
    }
    return sent;
}

Process direct(Run& run, Endpoint& gpu) {
    co_await gpu.delay(run.costs.launch);
    const auto peers = static_cast<std::int64_t>(run.gpus()) - 1;
    std::int64_t sent = 0;
    std::int64_t expected = 0;
    if (run.what.op != Op::all_gather) {
        sent += send_to_peers(run, gpu, false);
        expected += run.part(gpu.id()) > 0 ? peers : 0;
        co_await gpu.until(kArrived, expected);
    }
    if (run.gathers()) {
        if (run.what.op == Op::all_reduce) co_await gpu.delay(run.costs.hop);
        sent += send_to_peers(run, gpu, true);
        for (std::uint32_t i = 0; i < run.gpus(); ++i) {
            expected += i != gpu.id() && run.part(i) > 0 ? 1 : 0;
        }
        co_await gpu.until(kArrived, expected);
    }
    co_await gpu.until(kAnswered, sent);
    finish(run, gpu);
}

Process ring(Run& run, Endpoint& gpu) {
    co_await gpu.delay(run.costs.launch);
    const std::uint32_t n = run.gpus();
    const std::uint32_t steps = (n - 1) * (run.what.op == Op::all_reduce ? 2 : 1);
    std::int64_t expected = 0;
    for (std::uint32_t step = 0; step < steps; ++step) {
        // The part that this GPU passes on at this step, and the one that comes to it.
        const Bytes out = run.part((gpu.id() + step * (n - 1)) % n);
        const Bytes in = run.part((gpu.id() + n - 1 + step * (n - 1)) % n);
        if (out > 0) {
            Transfer transfer;
            transfer.dst = static_cast<GpuId>((gpu.id() + 1) % n);
            transfer.bytes = out;
            transfer.arrived = kArrived;
            gpu.post(transfer);
        }
        if (in > 0) ++expected;
        co_await gpu.until(kArrived, expected);
        co_await gpu.delay(run.costs.hop);
    }
    finish(run, gpu);
}

Process switch_loads(Run& run, Endpoint& gpu) {
    co_await gpu.delay(run.costs.switch_launch);
    const Bytes slice = run.part(gpu.id());
    const Bytes in_flight = run.costs.outstanding_loads * Bytes{128};
    const std::int64_t window = std::max<std::int64_t>(1, in_flight / kSwitchChunk);
    std::int64_t posted = 0;
    for (Bytes offset = 0; offset < slice; offset += kSwitchChunk) {
        // A warp loads again when its last result is loaded, or stored where it is to be stored.
        co_await gpu.until(run.gathers() ? kAnswered : kLoaded, posted - window + 1);
        Transfer load;
        load.kind = Kind::load;
        load.multicast = true;
        load.bytes = std::min(kSwitchChunk, slice - offset);
        load.address = static_cast<std::uint64_t>(offset);
        load.answered = kLoaded;
        gpu.post(load);
        ++posted;
    }
    co_await gpu.until(kLoaded, posted);
    finish(run, gpu);
}

Process switch_stores(Run& run, Endpoint& gpu) {
    co_await gpu.delay(run.costs.switch_launch);
    const Bytes slice = run.part(gpu.id());
    std::int64_t posted = 0;
    for (Bytes offset = 0; offset < slice; offset += kSwitchChunk) {
        if (run.reduces()) co_await gpu.until(kLoaded, posted + 1);
        Transfer store;
        store.multicast = true;
        store.bytes = std::min(kSwitchChunk, slice - offset);
        store.address = static_cast<std::uint64_t>(offset);
        store.answered = kAnswered;
        gpu.post(store);
        ++posted;
    }
    co_await gpu.until(kAnswered, posted);
    finish(run, gpu);
}

void spawn(Run& run, Endpoint& gpu) {
    for (const char* counter : {"arrived parts", "acknowledged parts", "reduced chunks"}) {
        gpu.add_counter(counter);
    }
    switch (run.what.algorithm) {
        case Algorithm::direct:
            gpu.spawn("direct exchange", direct(run, gpu));
            break;
        case Algorithm::ring:
            gpu.spawn("ring", ring(run, gpu));
            break;
        case Algorithm::nvls:
            if (run.reduces()) gpu.spawn("reduction loads", switch_loads(run, gpu));
            if (run.gathers()) gpu.spawn("multicast stores", switch_stores(run, gpu));
            break;
    }
}

void refuse_if_impossible(const Machine& machine, const Collective& what) {
    if (what.bytes <= 0)
        throw InputError(fmt::format("bytes must be positive, found {}", what.bytes));
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
    if (what.algorithm == Algorithm::nvls && (!machine.in_switch || machine.nodes > 1)) {
        throw InputError(
            fmt::format("{} cannot run nvls: it needs one node whose switches multicast and reduce",
                        machine.name));
    }
}

double bus_bandwidth(const Collective& what, Ps time) {
    const double n = what.gpus;
    const double factor = (what.op == Op::all_reduce ? 2.0 : 1.0) * (n - 1) / n;
    return factor * static_cast<double>(what.bytes) / to_seconds(time);
}

}  // namespace
}  // namespace sim

CollectiveResult run_collective(const Machine& machine, const Collective& collective) {
    sim::refuse_if_impossible(machine, collective);
    sim::FabricOptions options;
    options.grain = collective.grain;
    options.train = collective.train;
    sim::Fabric fabric(machine, options);
    sim::Run run{collective, machine.collective};
    for (std::uint32_t i = 0; i < run.gpus(); ++i) sim::spawn(run, fabric.gpu(i));
    fabric.run();

    CollectiveResult result;
    result.time = run.end;
    result.bus_bandwidth = sim::bus_bandwidth(collective, run.end);
    result.bytes_up = fabric.wire_bytes_up();
    result.bytes_down = fabric.wire_bytes_down();
    result.packets = fabric.packets_received();
    result.events = fabric.events();
    return result;
}

}  // namespace moehub
