// Large groups. n GPUs, N nodes; m few nodes that are simulated.
//
// Rings of nodes with several members: some steps on a few nodes tell all
// (sim/collective/collective.cpp). Rings of one member a node: steps with parts of bytes / N are
// alike, so
//
//     time = start + (time of m nodes with such parts − start) · (N − 1) / (m − 1).
//
// Exchanges send (N − 1) / N of their bytes through NICs, at their rate:
//
//     time = start + (time of m nodes − start) · (1 − 1/N) / (1 − 1/m).
//
// NVLS trees keep their NICs busy whatever their depth; a level more costs its way up and down:
//
//     time = time of 4 nodes + (log2 N − 2) · (time of 8 − time of 4 nodes, few bytes).
#include "base/input_error.hpp"
#include "plan/simulated.hpp"
#include "sim/collective/nccl.hpp"

#include <algorithm>
#include <bit>

namespace moehub {
namespace {

using Op = Collective::Op;
using Algorithm = Collective::Algorithm;

constexpr std::uint32_t kFewSteps = 32;  // steps of a ring that tell the rest
constexpr double kWhole = 0.002;  // share of the usual length of calls that are run as a whole
constexpr Bytes kTrain = Bytes{1} << 19;  // parts are megabytes; switches add up smaller ones
constexpr int kFewNodes = 8;              // nodes of a ring with one member each
constexpr int kExchangeGpus = 32;
constexpr int kTreeNodes = 4;
constexpr Bytes kFewBytes = Bytes{1} << 16;
constexpr int kSmallNode = 32;            // GPUs of a small node
constexpr double kLinearPart = 32 << 20;  // bytes of a GPU

Bytes whole_bytes(double bytes) {
    return std::max<Bytes>(1, static_cast<Bytes>(bytes + 0.5));
}

double run_on(const Machine& part, Op op, Algorithm algorithm, double bytes,
              std::optional<sim::Protocol> protocol = {}) {
    Collective what;
    what.op = op;
    what.algorithm = algorithm;
    what.gpus = part.gpus();
    what.bytes = whole_bytes(bytes);
    if (op != Op::all_reduce) what.train = kTrain;
    return to_seconds(sim::run_collective(part, what, {kWhole, kFewSteps, protocol}).time);
}

double ring_of_nodes(const Machine& machine, Op op, int nodes, double bytes) {
    const int few = std::min(nodes, kFewNodes);
    const double time =
        run_on(machine_of(machine, {1, few}), op, Algorithm::automatic, bytes / nodes * few);
    if (few == nodes) return time;
    const double start = to_seconds(machine.collective.launch);
    return start + (time - start) * (nodes - 1) / (few - 1);
}

double exchange_seconds(const Machine& machine, GroupShape shape, double bytes) {
    const int few = std::min(shape.nodes, std::max(2, kExchangeGpus / shape.per_node));
    const Machine part = machine_of(machine, {shape.per_node, few});
    const double time = run_on(part, Op::all_to_all, Algorithm::automatic, bytes);
    if (few == shape.nodes) return time;
    const double start = to_seconds(machine.collective.launch);
    return start + (time - start) * (1 - 1.0 / shape.nodes) / (1 - 1.0 / few);
}

double mesh_seconds(const Machine& machine, Op op, GroupShape shape, double bytes) {
    const double rounds = op == Op::all_reduce ? 2 : 1;
    double time = 0;
    if (shape.per_node > 1)
        time += run_on(machine_of(machine, {shape.per_node, 1}), Op::reduce_scatter,
                       Algorithm::direct, bytes);
    if (shape.nodes > 1)
        time += ring_of_nodes(machine, Op::reduce_scatter, shape.nodes, bytes / shape.per_node);
    return rounds * time;
}

double tree_seconds(const Machine& machine, GroupShape shape, double bytes) {
    const auto of_nodes = [&](int nodes, double size) {
        const Machine part = machine_of(machine, {shape.per_node, nodes});
        return run_on(part, Op::all_reduce, Algorithm::nvls_tree, size);
    };
    const double few_bytes = kFewBytes;
    const double level = of_nodes(2 * kTreeNodes, few_bytes) - of_nodes(kTreeNodes, few_bytes);
    const auto levels = std::bit_width(static_cast<unsigned>(shape.nodes - 1));
    const auto known = std::bit_width(static_cast<unsigned>(kTreeNodes - 1));
    return of_nodes(kTreeNodes, bytes) + std::max(0.0, level) * (levels - known);
}

sim::NcclChoice choice_of(const Machine& part, Op op, double bytes) {
    return sim::choose(part, static_cast<std::uint32_t>(part.gpus()), {op, whole_bytes(bytes)});
}

/// What LL128 takes between nodes was fitted to racks of 72, and holds there. On nodes of 8 NCCL's
/// estimate of it is far better than that, and it would be taken up to gigabytes.
bool knows_better(const Machine& machine, const sim::NcclChoice& choice) {
    return choice.protocol == sim::Protocol::ll128 && machine.gpus_per_node <= kSmallNode;
}

double ring_seconds(const Machine& part, Op op, double bytes, bool simple_too) {
    const double time = run_on(part, op, Algorithm::automatic, bytes);
    if (!simple_too) return time;
    return std::min(time, run_on(part, op, Algorithm::automatic, bytes, sim::Protocol::simple));
}

}  // namespace

double group_seconds(const Machine& machine, Op op, GroupShape shape, double bytes) {
    if (shape.gpus() <= 1 || bytes <= 0) return 0;
    if (op == Op::all_to_all) return exchange_seconds(machine, shape, bytes);
    if (machine.topology == NodeTopology::mesh) return mesh_seconds(machine, op, shape, bytes);
    if (shape.per_node == 1) return ring_of_nodes(machine, op, shape.nodes, bytes);
    const Machine part = machine_of(machine, shape);
    if (shape.nodes == 1) return run_on(part, op, Algorithm::automatic, bytes);
    const sim::NcclChoice choice = choice_of(part, op, bytes);
    if (!choice.in_switch) return ring_seconds(part, op, bytes, knows_better(machine, choice));
    if (shape.nodes > kTreeNodes) return tree_seconds(machine, shape, bytes);
    return run_on(part, op, Algorithm::automatic, bytes);
}

double linear_from(GroupShape shape) {
    return std::max(1e9, kLinearPart * shape.gpus());
}

GroupShape shape_of(const Machine& machine, GpuGroup group) {
    if (group.size < 1 || group.stride < 1)
        throw input_error("a group of {} GPUs, every {}-th: allowed 1 and more", group.size,
                          group.stride);
    int per_node = std::clamp(machine.gpus_per_node / group.stride, 1, group.size);
    while (group.size % per_node != 0) --per_node;
    return {per_node, group.size / per_node};
}

Machine machine_of(const Machine& machine, GroupShape shape) {
    Machine part = machine;
    part.gpus_per_node = shape.per_node;
    part.nodes = shape.nodes;
    part.max_gpus = 0;
    part.nccl.net_rings = std::min(machine.nccl.net_rings, shape.per_node);
    // Other groups' packets are elsewhere: a leaf's uplinks are those of all its nodes.
    if (part.leaf_uplinks == 0)
        part.leaf_uplinks = machine.leaf_nodes > 0 ? machine.leaf_nodes : machine.nodes;
    const bool mesh = machine.topology == NodeTopology::mesh;
    if (mesh && shape.per_node > 1)
        part.link.bandwidth *= static_cast<double>(shape.per_node - 1) /
                               static_cast<double>(machine.gpus_per_node - 1);
    return part;
}

}  // namespace moehub
