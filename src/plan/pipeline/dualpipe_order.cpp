// DualPipe (DeepSeek-V3, arXiv 2412.19437, section 3.2.1; the order is that of DeepSeek's published
// repository). Micro-batches enter at both ends. Stage s is r = min(s, p - 1 - s) away from its
// end; to it the micro-batches that enter there are near (0), the others far (1). With h = p / 2
// and n micro-batches from each end its order is
//     2(h - r - 1) · F0,  (r + 1) · F0 F1,  (h - r - 1) · B1 W F1,
//     (n - p + r + 1) · F0&B1 F1&B0,
//     (h - r - 1) · B1 F1&B0,  (r + 1) · B1 B0,  (h - r - 1) · W B0,  (r + 1) · W
// where & is a pair that overlaps, and W the gradients of weights that a backward left for later:
// those of the third part, of the second half of the sixth and of the seventh do; first in, first
// out.
#include "plan/pipeline/dualpipe_order.hpp"

#include <algorithm>

namespace moehub {

using StepKind = DualPipeStep::Kind;

DualPipeOrder::DualPipeOrder(int stages, int stage)
    : half_(stages / 2),
      from_end_(std::min(stage, stages - 1 - stage)),
      second_half_(stage >= half_ ? 1 : 0) {
    open();
    close();
}

DualPipeStep DualPipeOrder::step(std::int64_t at, std::int64_t n) const {
    const auto opening = static_cast<std::int64_t>(opening_.size());
    if (at < opening) return opening_[static_cast<std::size_t>(at)];
    const std::int64_t closing = steps_until(repeated(n) - 1);
    if (at >= closing) return closing_[static_cast<std::size_t>(at - closing)];
    return {StepKind::pair, static_cast<char>((at - opening + middle()) % 2)};
}

void DualPipeOrder::open() {
    const int inside = half_ - from_end_ - 1;
    opening_.reserve(static_cast<std::size_t>(5 * half_ + 2));
    for (int i = 0; i < 2 * inside; ++i) opening_.push_back({StepKind::forward, 0});
    for (int i = 0; i <= from_end_; ++i) {
        opening_.push_back({StepKind::forward, 0});
        opening_.push_back({StepKind::forward, 1});
    }
    for (int i = 0; i < inside; ++i) {
        opening_.push_back({StepKind::backward_inputs, 1});
        opening_.push_back({StepKind::weights, 1});
        opening_.push_back({StepKind::forward, 1});
    }
    if (middle() == 0) return;
    opening_.push_back({StepKind::forward, 0});
    opening_.push_back({StepKind::backward, 1});
}

void DualPipeOrder::close() {
    const int inside = half_ - from_end_ - 1;
    closing_.reserve(static_cast<std::size_t>(5 * half_));
    for (int i = 0; i < inside; ++i) {
        closing_.push_back({StepKind::backward, 1});
        closing_.push_back({StepKind::pair, 1});
    }
    for (int i = 0; i < 2 * (from_end_ + 1); ++i)
        closing_.push_back({i <= from_end_ ? StepKind::backward : StepKind::backward_inputs,
                            static_cast<char>(i % 2 == 0 ? 1 : 0)});
    for (int i = 0; i < inside; ++i) {
        closing_.push_back({StepKind::weights, 0});
        closing_.push_back({StepKind::backward_inputs, 0});
    }
    for (int i = 0; i <= from_end_; ++i) closing_.push_back({StepKind::weights, 0});
}

}  // namespace moehub
