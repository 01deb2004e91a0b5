/// AllReady: when all of a GPU's stores are acknowledged its hub tells all others, and a hub that
/// has heard so from everyone releases what its DAM still holds back: nothing more will come.
#pragma once
#include "sim/fabric.hpp"
#include "sim/hub/hub.hpp"

namespace moehub::sim {

class AllReady {
  public:
    explicit AllReady(Fabric& fabric);

    /// The counter for a store's acknowledgement (`RowStore::answered`), the same on all GPUs.
    CounterId acknowledged() const { return acknowledged_; }
    /// The hub's own doing on one GPU, which will have made so many stores.
    void start(GpuId gpu, std::int64_t stores);
    /// `co_await all_ready.reached(gpu);`
    Endpoint::Until reached(GpuId gpu) { return fabric_.gpu(gpu).until(reached_, 1); }

  private:
    Process announce(GpuId gpu, std::int64_t stores);
    Process watch(GpuId gpu);

    Fabric& fabric_;
    CounterId acknowledged_ = 0;
    CounterId senders_done_ = 0;  ///< GPUs whose rows have all arrived everywhere
    CounterId reached_ = 0;       ///< 1 once every GPU is
};

}  // namespace moehub::sim
