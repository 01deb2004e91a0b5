/// One collective being run: what its programs share. A program is spawned on every GPU; all GPUs
/// have the same counters, so a sender can name its receiver's.
#pragma once
#include "sim/fabric.hpp"

#include <moehub/collective.hpp>

#include <algorithm>

namespace moehub::sim {

struct CollectiveRun {
    Collective what;
    Machine machine;
    Ps end = 0;  ///< when the last program was done

    std::uint32_t gpus() const { return static_cast<std::uint32_t>(what.gpus); }
    bool reduces() const {
        return what.op == Collective::Op::all_reduce || what.op == Collective::Op::reduce_scatter;
    }
    bool gathers() const {
        return what.op == Collective::Op::all_reduce || what.op == Collective::Op::all_gather;
    }
    void finish(const Endpoint& gpu) { end = std::max(end, gpu.now()); }
};

/// Where part i of n begins; parts differ by at most one byte.
inline Bytes part_begin(Bytes bytes, std::uint32_t i, std::uint32_t n) {
    return static_cast<Bytes>(static_cast<__int128>(bytes) * i / n);
}
inline Bytes part(Bytes bytes, std::uint32_t i, std::uint32_t n) {
    return part_begin(bytes, i + 1, n) - part_begin(bytes, i, n);
}

void spawn_direct(CollectiveRun& run, Endpoint& gpu);
void spawn_ring(CollectiveRun& run, Endpoint& gpu);
void spawn_nvls(CollectiveRun& run, Endpoint& gpu);

}  // namespace moehub::sim
