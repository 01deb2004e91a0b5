// 1F1B as Megatron-LM issues it. Forwards go through p micro-batches of piece 0, the same p of
// piece 1, … of v pieces, then through the next p; backwards likewise, with the pieces the other
// way round. The order of stage s of p is
//     F(0) … F(w-1), then F(w+i) B(i) for i = 0, 1, …, and the last w backwards alone,
// with the warm-up w = p - 1 - s, plain; 2(p - 1 - s) + (v - 1)p, interleaved; and
// 2(p - 1 - s) + (v - 1)p + 1 where F(w+i) and B(i) run as one task. Only with one more neither
// needs the other, and only with two for each stage behind do the stages' pairs not wait for each
// other by turns; so plain 1F1B in pairs (which Megatron-LM does not offer) warms up like this too.
#include "plan/pipeline/one_f_one_b_order.hpp"

#include "plan/pipeline/schedules.hpp"

namespace moehub {

OneFOneBOrder::OneFOneBOrder(const PipelineInput& input)
    : times_(input.times),
      stages_(input.stages),
      pieces_(input.pieces),
      pairs_(std::any_of(times_.begin(), times_.end(),
                         [](const PieceTime& time) { return pair_saving(time) > 0; })),
      in_waves_(pieces_ > 1 || pairs_) {}

}  // namespace moehub
