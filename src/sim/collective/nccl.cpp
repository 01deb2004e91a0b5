#include "sim/collective/nccl.hpp"

namespace moehub::sim {

namespace {

bool in_one_node(const Communicator& all) {
    const std::uint32_t node = all.fabric().topology().gpus_per_node;
    return all.member(0) / node == all.member(all.size() - 1) / node;
}

}  // namespace

/// Between nodes NCCL's choice is not modelled: a ring there, hop by hop (ring.cpp), and sends of
/// everyone to everyone (direct.cpp).
Process nccl(Communicator& all, GpuId gpu, NcclCall call) {
    const bool sends = call.op == Collective::Op::all_to_all;
    if (!in_one_node(all)) {
        return sends ? direct(all, gpu, call.op, call.bytes) : ring(all, gpu, call.op, call.bytes);
    }
    const NcclChoice choice = choose(all.machine(), all.size(), call);
    if (sends) return sends_and_receives(all, gpu, call.bytes, choice.protocol);
    if (!choice.in_switch) return protocol_ring(all, gpu, call, choice.protocol);
    Slice slice;
    slice.begin = part_begin(call.bytes, all.rank(gpu), all.size());
    slice.bytes = part(call.bytes, all.rank(gpu), all.size());
    return all_reduce_in_waves(all, gpu, slice, waves_of(all, call.bytes));
}

}  // namespace moehub::sim
