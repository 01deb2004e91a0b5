#include "layers/tp/tp_flags.hpp"

namespace moehub::layers {

void TpFlags::raise(GpuId from, GpuId to, std::uint32_t number) {
    sim::Endpoint& endpoint = layer_.gpus.endpoint(from);
    if (from == to) {
        endpoint.increase(first_ + number);
        return;
    }
    sim::Transfer flag;
    flag.dst = to;
    flag.bytes = kBytes;
    flag.address = (std::uint64_t{to} << 40) + (std::uint64_t{from} << 7);
    flag.arrived = first_ + number;
    flag.from_sm = true;
    endpoint.post(flag);
}

void TpFlags::raise_at_others(GpuId from, std::uint32_t number) {
    for (std::uint32_t i = 1; i < layer_.gpus.count(); ++i)
        raise(from, static_cast<GpuId>((from + i) % layer_.gpus.count()), number);
}

}  // namespace moehub::layers
