/// What a collective library does for a MoE layer: all-to-all with uneven counts, and a small
/// all-gather. Rows move in bulk: one transfer per pair of GPUs.
#pragma once
#include "systems/layer.hpp"

#include <vector>

namespace moehub::systems {

/// Collectives keep the GPU waiting for the network from launch to end.
struct Communicating {
    sim::Card& card;
    explicit Communicating(sim::Card& on) : card(on) {
        card.activity.communicate(1, card.endpoint.now());
    }
    ~Communicating() { card.activity.communicate(-1, card.endpoint.now()); }
    Communicating(const Communicating&) = delete;
};

/// A row in a buffer: whose it is and, where rows carry numbers, what it says.
struct BufferedRow {
    std::uint32_t token = 0;
    std::uint16_t slot = 0;
    std::uint16_t expert = 0;
    const double* numbers = nullptr;
};
using Buffer = std::vector<BufferedRow>;

/// One all-to-all, possibly repeated: every GPU puts in a buffer for each other and takes out one
/// from each. The programs of all GPUs share it.
class AllToAll {
  public:
    AllToAll(Layer& layer, const char* name);

    /// Sends buffers[peer] of `bytes` per row to each peer and ends when everything for this GPU
    /// has arrived. What stays on the GPU is not moved.
    Process exchange(GpuId gpu, std::vector<Buffer> buffers, Bytes bytes);
    /// After exchange: from each peer, in the order in which it was put in.
    std::vector<Buffer>& received(GpuId gpu) { return received_[gpu]; }

  private:
    Layer& layer_;
    sim::CounterId arrived_ = 0;
    sim::CounterId answered_ = 0;
    std::vector<std::vector<Buffer>> received_;  ///< [gpu][peer]
};

/// All GPUs tell all others `bytes`; used once.
class CountExchange {
  public:
    explicit CountExchange(Layer& layer);
    Process exchange(GpuId gpu, Bytes bytes);

  private:
    Layer& layer_;
    sim::CounterId arrived_ = 0;
};

}  // namespace moehub::systems
