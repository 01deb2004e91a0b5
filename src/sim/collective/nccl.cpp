#include "sim/collective/nccl.hpp"

namespace moehub::sim {

namespace {

bool in_one_node(const Communicator& all) {
    const std::uint32_t node = all.fabric().topology().gpus_per_node;
    return all.member(0) / node == all.member(all.size() - 1) / node;
}

}  // namespace

/// Of some GPUs of several nodes NCCL's choice is not modelled: a ring there, hop by hop
/// (ring.cpp), and sends of everyone to everyone (direct.cpp).
Process nccl(Communicator& all, GpuId gpu, NcclCall call) {
    const bool sends = call.op == Collective::Op::all_to_all;
    const bool near = in_one_node(all);
    if (!near && all.rings() == 1) {
        return sends ? direct(all, gpu, call.op, call.bytes) : ring(all, gpu, call.op, call.bytes);
    }
    NcclCall whole = call;
    if (call.part_of > 0) whole.bytes = call.part_of;
    const NcclChoice choice = choose(all.machine(), all.size(), whole);
    if (sends) {
        return near ? sends_and_receives(all, gpu, call.bytes, choice.protocol)
                    : sends_by_rail(all, gpu, call.bytes);
    }
    call.protocol = choice.protocol;
    if (!choice.in_switch) return protocol_ring(all, gpu, call);
    if (!near) return nvls_tree(all, gpu, call.bytes, whole.bytes);
    Slice slice;
    slice.begin = part_begin(call.bytes, all.rank(gpu), all.size());
    slice.bytes = part(call.bytes, all.rank(gpu), all.size());
    return all_reduce_in_waves(all, gpu, slice, waves_of(all.machine(), all.size(), whole.bytes));
}

}  // namespace moehub::sim
