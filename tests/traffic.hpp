/// Traffic for fabric tests: who sends how much to whom, and when it arrived.
#pragma once
#include "sim/fabric.hpp"

#include <moehub/machine.hpp>

#include <algorithm>
#include <random>
#include <vector>

namespace moehub::testing {

/// A node of GPUs on switches, with round numbers: a 128 B packet takes 9 flits of 100 ps on each
/// of four links.
inline Machine small_machine(int gpus = 8, int switches = 4) {
    Machine machine;
    machine.name = "test";
    machine.gpus_per_node = gpus;
    machine.switches = switches;
    machine.in_switch = true;
    machine.link.bandwidth = 160e9 * switches;
    machine.link.latency = 250 * kNs;
    machine.hub = {150 * kNs, 400 * kNs, 600 * kNs, 8};
    machine.moe_hub.store_bytes = 128;
    return machine;
}

/// Nodes of such GPUs, a NIC of 50 GB/s each, four spines between the rails.
inline Machine small_cluster(int nodes) {
    Machine machine = small_machine();
    machine.nodes = nodes;
    machine.nic.bandwidth = 50e9;
    machine.nic.latency = 600 * kNs;
    machine.nic.flit = 64;
    machine.nic.payload = 4096;
    machine.spines = 4;
    machine.spine_latency = 500 * kNs;
    return machine;
}

struct Flow {
    std::uint32_t src;
    std::uint32_t dst;
    Bytes bytes;
    Ps start = 0;
    sim::EventKind kind = sim::EventKind::store;
};

struct Delivery {
    std::vector<Ps> delivered;  ///< by flow: in memory
    std::vector<Ps> completed;  ///< by flow: acknowledged
    Ps end = 0;                 ///< time of the last flow's delivery
    Bytes received = 0;
    Bytes up = 0;
    Bytes down = 0;
};

inline sim::Process send(sim::Endpoint& gpu, std::vector<Flow> flows) {
    std::uint64_t offset = 0;
    for (const Flow& flow : flows) {
        co_await gpu.delay(flow.start - gpu.now());
        sim::Transfer transfer;
        transfer.kind = flow.kind;
        transfer.dst = static_cast<sim::GpuId>(flow.dst);
        transfer.bytes = flow.bytes;
        transfer.address = (std::uint64_t{flow.src} << 40) + offset;
        offset += static_cast<std::uint64_t>(flow.bytes);
        gpu.post(transfer);
    }
}

/// Flows of one source must be ordered by start; the result is ordered by source, then as given.
inline Delivery deliver(const Machine& machine, const std::vector<Flow>& flows,
                        const sim::FabricOptions& options) {
    sim::Fabric fabric(machine, options);
    for (std::uint32_t gpu = 0; gpu < static_cast<std::uint32_t>(machine.gpus()); ++gpu) {
        std::vector<Flow> own;
        for (const Flow& flow : flows) {
            if (flow.src == gpu) own.push_back(flow);
        }
        fabric.gpu(gpu).spawn("sender", send(fabric.gpu(gpu), own));
    }
    fabric.run();
    Delivery result;
    std::vector<sim::TransferId> order(fabric.transfers());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<sim::TransferId>(i);
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) {
        return fabric.transfer(a).src < fabric.transfer(b).src;
    });
    for (const sim::TransferId id : order) {
        const sim::Transfer& transfer = std::as_const(fabric).transfer(id);
        result.delivered.push_back(transfer.delivered_at);
        result.completed.push_back(transfer.completed_at);
        result.end = std::max(result.end, transfer.delivered_at);
    }
    result.received = fabric.payload_received();
    result.up = fabric.wire_bytes_up();
    result.down = fabric.wire_bytes_down();
    return result;
}

inline std::vector<Flow> all_to_all(std::uint32_t gpus, Bytes row, int rows) {
    std::vector<Flow> flows;
    for (std::uint32_t src = 0; src < gpus; ++src) {
        for (int i = 0; i < rows; ++i) {
            for (std::uint32_t step = 1; step < gpus; ++step) {
                flows.push_back({src, (src + step) % gpus, row});
            }
        }
    }
    return flows;
}

inline std::vector<Flow> incast(std::uint32_t gpus, Bytes row, int rows) {
    std::vector<Flow> flows;
    for (std::uint32_t src = 1; src < gpus; ++src) {
        for (int i = 0; i < rows; ++i) flows.push_back({src, 0, row});
    }
    return flows;
}

/// Each GPU sends rows to random others at random times: a link is busy about `load` of the time.
inline std::vector<Flow> sparse(std::uint32_t gpus, Bytes row, int rows, Ps horizon,
                                std::uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<Flow> flows;
    for (std::uint32_t src = 0; src < gpus; ++src) {
        std::vector<Flow> own;
        for (int i = 0; i < rows; ++i) {
            const std::uint32_t dst =
                (src + 1 + static_cast<std::uint32_t>(random()) % (gpus - 1)) % gpus;
            own.push_back(
                {src, dst, row, static_cast<Ps>(random() % static_cast<std::uint64_t>(horizon))});
        }
        std::sort(own.begin(), own.end(), [](auto& a, auto& b) { return a.start < b.start; });
        flows.insert(flows.end(), own.begin(), own.end());
    }
    return flows;
}

inline Ps percentile(std::vector<Ps> times, double fraction) {
    std::sort(times.begin(), times.end());
    return times[static_cast<std::size_t>(fraction * static_cast<double>(times.size() - 1))];
}

}  // namespace moehub::testing
