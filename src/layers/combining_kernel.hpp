/// SMs that load sums of results for the tokens that their GPU collects, as these get ready: each
/// as many at a time as its registers hold, and no faster than an SM stores what it has loaded.
#pragma once
#include "layers/multimem_layer.hpp"

#include <deque>
#include <functional>

namespace moehub::layers {

class CombiningKernel {
  public:
    /// `collected` is told of each token whose results in the node are all there.
    using Collected = std::function<void(GpuId gpu, std::uint32_t token)>;
    CombiningKernel(MultimemLayer& rows, Collected collected);

    /// A token of which a part can be loaded now. Its last part is added last.
    struct Item {
        std::uint32_t token = 0;
        MultimemLayer::Part part;
        bool last = true;
    };
    void add(GpuId gpu, const Item& item);
    /// `co_await kernel.ready(gpu);` goes on when the first is there.
    sim::Endpoint::Until ready(GpuId gpu) { return rows_.layer.endpoint(gpu).until(ready_, 1); }

    /// Takes the system's `combining_sms` SMs, and gives them back.
    void start(GpuId gpu);
    void stop(GpuId gpu) { rows_.layer.card(gpu).blocks.release(sms(), KernelName::combine); }

  private:
    struct Queue {
        std::vector<Item> items;              ///< in the order in which they were ready
        std::size_t next = 0;                 ///< that an SM takes
        std::vector<std::uint32_t> underway;  ///< tokens whose last part is asked for
    };
    int sms() const { return rows_.layer.system.combining_sms; }
    Process run_sm(GpuId gpu);
    void take_collected(GpuId gpu);

    MultimemLayer& rows_;
    Collected collected_;
    sim::CounterId ready_;
    std::deque<Queue> queues_;  ///< by GPU
};

}  // namespace moehub::layers
