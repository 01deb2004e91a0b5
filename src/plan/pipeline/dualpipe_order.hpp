/// The order of one stage's tasks under DualPipe: dualpipe_order.cpp has it in one formula.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace moehub {

struct DualPipeStep {
    enum class Kind : char { forward, backward, backward_inputs, weights, pair };
    Kind kind = Kind::forward;
    /// 1: for micro-batches that entered at the other half's end; of a pair its forward is, and its
    /// backward is not. Weights take what has waited longest, whichever it is.
    char far = 0;
};

class DualPipeOrder {
  public:
    DualPipeOrder(int stages, int stage);

    /// Steps with n micro-batches from each end.
    std::int64_t steps(std::int64_t n) const {
        return steps_until(repeated(n) - 1) + static_cast<std::int64_t>(closing_.size());
    }
    /// How often its pairs of pairs are repeated; what differs with n.
    std::int64_t repeated(std::int64_t n) const { return n - 2 * half_ + from_end_ + 1; }
    /// Steps until the end of repetition j.
    std::int64_t steps_until(std::int64_t j) const {
        return static_cast<std::int64_t>(opening_.size()) + 2 * (j + 1) - middle();
    }
    DualPipeStep step(std::int64_t at, std::int64_t n) const;

    /// Of a step's micro-batches: 0, they entered at stage 0; 1, at the last.
    std::size_t direction(int far) const { return static_cast<std::size_t>(far ^ second_half_); }

  private:
    /// 1: one of the two stages that do not overlap their first pair, which makes the bubble
    /// smaller.
    int middle() const { return from_end_ == half_ - 1 ? 1 : 0; }
    void open();
    void close();

    int half_;
    int from_end_;
    int second_half_;
    std::vector<DualPipeStep> opening_;
    std::vector<DualPipeStep> closing_;
};

}  // namespace moehub
