/// The order of a stage's tasks under 1F1B: one_f_one_b_order.cpp has it in one formula.
#pragma once
#include "plan/pipeline/pipeline.hpp"

namespace moehub {

/// Forwards and backwards of a stage are counted 0, 1, … over all its pieces.
class OneFOneBOrder {
  public:
    explicit OneFOneBOrder(const PipelineInput& input);

    std::int64_t stages() const { return stages_; }
    std::int64_t pieces() const { return pieces_; }
    bool pairs() const { return pairs_; }        ///< a forward and a backward run as one task
    bool in_waves() const { return in_waves_; }  ///< interleaved, or pairs

    std::int64_t warm_up(std::int64_t stage) const {
        const std::int64_t behind = stages_ - 1 - stage;
        return in_waves_ ? 2 * behind + (pieces_ - 1) * stages_ + (pairs_ ? 1 : 0) : behind;
    }
    std::int64_t piece_forward(std::int64_t number) const { return number / stages_ % pieces_; }
    std::int64_t piece_backward(std::int64_t number) const {
        return pieces_ - 1 - piece_forward(number);
    }
    std::int64_t micro_batch(std::int64_t number) const {
        return pieces_ == 1 ? number : number / (stages_ * pieces_) * stages_ + number % stages_;
    }
    const PieceTime& time(std::int64_t stage, std::int64_t piece) const {
        return times_[static_cast<std::size_t>(piece * stages_ + stage)];
    }

  private:
    const std::vector<PieceTime>& times_;
    std::int64_t stages_;
    std::int64_t pieces_;
    bool pairs_;
    bool in_waves_;
};

}  // namespace moehub
