#include "sim/collective/in_switch.hpp"

#include <cmath>

namespace moehub::sim {

Chunks::Chunks(const Machine& machine) {
    const Bytes payload = machine.link.payload;
    const Bytes in_flight = machine.collective.outstanding_loads * payload;
    size = std::clamp<Bytes>(in_flight / 16 / payload * payload, payload, 32768);
    window = std::max<std::int64_t>(1, in_flight / size);
}

Transfer switch_chunk(const SwitchRequest& request, const Slice& slice, Bytes offset, Bytes size) {
    Transfer transfer;
    transfer.kind = request.kind;
    transfer.group = request.group;
    transfer.bytes = std::min(size, slice.bytes - offset);
    transfer.address = static_cast<std::uint64_t>(slice.begin + offset);
    transfer.target = slice.target;
    transfer.target.offset += static_cast<std::uint32_t>(offset);
    return transfer;
}

Ps copy_time(const Communicator& all, std::uint32_t heads, Bytes part_of_slice) {
    const double rate = all.costs().switch_channels * all.costs().channel_copy;
    return std::llround(static_cast<double>(part_of_slice) * heads / rate * kSecond);
}

Ps copied_in(const Communicator& all, std::uint32_t heads, const SlicePlace& place) {
    const Bytes unit = place.waves.bytes > 0 ? place.waves.bytes : Chunks(all.machine()).size;
    const Bytes begin = place.offset / unit * unit;
    return copy_time(all, heads, 2 * begin + std::min(unit, place.slice.bytes - begin)) +
           (place.waves.bytes > 0 ? place.offset / unit * place.waves.pause : 0);
}

Ps switch_start(const Communicator& all, std::uint32_t gpus) {
    return all.nccl().switch_start + Ps{gpus} * gpus * all.nccl().switch_pair;
}

// Chunks of a channel by the bytes of the call (NCCL, src/enqueue.cc): smaller ones where few would
// be underway.
Waves waves_of(const Machine& machine, std::uint32_t heads, Bytes bytes) {
    const Bytes channels = machine.collective.switch_channels;
    const Bytes at_once = channels * heads;
    Bytes chunk = 131072;
    if (bytes <= 64 * at_once * chunk) chunk = 65536;
    if (bytes < 8 * at_once * chunk) chunk = std::min<Bytes>(chunk, 32768);
    if (bytes < 2 * at_once * chunk) chunk = std::min<Bytes>(chunk, 16384);
    return {channels * chunk, machine.nccl.switch_wave};
}

}  // namespace moehub::sim
