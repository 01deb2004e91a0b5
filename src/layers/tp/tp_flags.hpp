/// Flags of a tensor-parallel sub-layer's programs: stores of 16 B, each counted where it goes. A
/// flag may overtake rows: who raises it waits for their acknowledgement first.
#pragma once
#include "layers/tp/tp_layer.hpp"

namespace moehub::layers {

class TpFlags {
  public:
    static constexpr Bytes kBytes = 16;

    /// So many, each with a count of its own on every GPU.
    TpFlags(TpLayer& layer, const char* name, std::size_t how_many)
        : layer_(layer), first_(layer.gpus.add_counters(name, how_many)) {}

    /// One more at `to`; nothing moves where that is the GPU itself.
    void raise(GpuId from, GpuId to, std::uint32_t number = 0);
    /// … at all others, the next one's first.
    void raise_at_others(GpuId from, std::uint32_t number = 0);
    sim::Endpoint::Until until(GpuId gpu, std::int64_t many, std::uint32_t number = 0) {
        return layer_.gpus.endpoint(gpu).until(first_ + number, many);
    }

  private:
    TpLayer& layer_;
    sim::CounterId first_;
};

}  // namespace moehub::layers
