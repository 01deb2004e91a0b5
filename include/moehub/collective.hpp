/// Collectives, simulated on a machine's fabric.
#pragma once
#include <moehub/machine.hpp>
#include <moehub/units.hpp>

#include <string>

namespace moehub {

/// Two grains over one fabric: every packet, or a row's packets as one train.
enum class Grain { packet, row };

struct Collective {
    enum class Op { all_to_all, all_gather, reduce_scatter, all_reduce };
    /// `automatic`: as NCCL chooses by size. `one_shot`: TensorRT-LLM's all-reduce in one kernel,
    /// everyone's buffer to all others. `nvls_tree`: NCCL's all-reduce of in-switch sums that a
    /// tree over the nodes adds up. `collnet`: NCCL's CollnetChain, chains of a node's GPUs whose
    /// sums leaves and spines add up.
    enum class Algorithm { direct, ring, nvls, automatic, one_shot, nvls_tree, collnet };
    enum class Element { half, int8 };
    Op op = Op::all_to_all;
    Algorithm algorithm = Algorithm::direct;
    Element element = Element::half;  ///< what `automatic` sums; no switch adds up int8
    int gpus = 8;
    Bytes bytes = 0;  ///< nccl-tests' size column
    Grain grain = Grain::row;
    Bytes train = 65536;  ///< row grain: largest payload that travels as one train
};

struct CollectiveResult {
    Ps time = 0;
    double bus_bandwidth = 0;  ///< bytes/s, nccl-tests' definition
    Bytes bytes_up = 0;        ///< bytes on the wire, GPUs to switches, headers included
    Bytes bytes_down = 0;      ///< bytes on the wire, switches to GPUs
    std::int64_t packets = 0;  ///< packets that reached a GPU, acknowledgements aside
    std::int64_t events = 0;   ///< events that the engine handled
    std::string chosen;        ///< what `automatic` chose: "ring, LL"; else empty
    /// What was run of a long call between nodes, or of many GPUs, that does the same over and
    /// over: "288 of 2878 steps", time, bytes and packets being of the whole; else empty.
    std::string part;
};

/// Throws InputError when the machine cannot run it (too many GPUs, no in-switch units, …).
CollectiveResult run_collective(const Machine& machine, const Collective& collective);

}  // namespace moehub
