#include "layers/tp/piece_loads.hpp"

#include <algorithm>

namespace moehub::layers {
namespace {

constexpr Bytes kLargestPart = 65536;

}  // namespace

/// An eighth of what may be in flight, in whole packets.
PieceLoads::PieceLoads(TpLayer& layer, GpuId gpu, Bytes window)
    : endpoint_(layer.gpus.endpoint(gpu)), answered_(endpoint_.add_counter("loads of a piece")) {
    const Bytes payload = layer.input.machine.link.payload;
    const Bytes most = std::max(payload, kLargestPart / payload * payload);
    part_ = std::clamp<Bytes>(window / 8 / payload * payload, payload, most);
    most_ = std::max<Bytes>(1, window / part_);
}

Process PieceLoads::load(sim::Transfer whole) {
    for (Bytes offset = 0; offset < whole.bytes; offset += part_) {
        co_await endpoint_.until(answered_, ++posted_ - most_);
        sim::Transfer one = part_of(whole, offset, part_);
        one.answered = answered_;
        endpoint_.post(one);
    }
}

sim::Transfer part_of(const sim::Transfer& whole, Bytes offset, Bytes size) {
    sim::Transfer part = whole;
    part.bytes = std::min(size, whole.bytes - offset);
    part.address += static_cast<std::uint64_t>(offset);
    part.target.offset += static_cast<std::uint32_t>(offset);
    return part;
}

}  // namespace moehub::layers
