// 1F1B, run. Iteration t runs F(w+i) B(i) of every stage s of p with i = t - skew. In waves (see
// OneFOneBOrder) skew = p - 1 - s: whatever a stage needs its neighbour made in iteration
// t - 1, the way from the last stage to the first one's next piece included. Plain, skew = 0:
// backwards come down the stages in the same iteration. So one time a stage and direction is all
// that is under way, and no task is ever looked for.
#include "plan/pipeline/schedules.hpp"

namespace moehub {
namespace {

/// 1F1B as Megatron-LM issues it. Forwards go through p micro-batches of piece 0, the same p of
/// piece 1, … of v pieces, then through the next p; backwards likewise, with the pieces the other
/// way round. The order of stage s of p is
///     F(0) … F(w-1), then F(w+i) B(i) for i = 0, 1, …, and the last w backwards alone,
/// with the warm-up w = p - 1 - s, plain; 2(p - 1 - s) + (v - 1)p, interleaved; and 2(p - 1 - s) +
/// (v - 1)p + 1 where F(w+i) and B(i) run as one task. Only with one more neither needs the other,
/// and only with two for each stage behind do the stages' pairs not wait for each other by turns;
/// so plain 1F1B in pairs (which Megatron-LM does not offer) warms up like this too.
///
/// Forwards and backwards of a stage are counted 0, 1, … over all its pieces.
class OneFOneBOrder {
  public:
    explicit OneFOneBOrder(const PipelineInput& input)
        : times_(input.times),
          stages_(input.stages),
          pieces_(input.pieces),
          pairs_(std::any_of(times_.begin(), times_.end(),
                             [](const PieceTime& time) { return pair_saving(time) > 0; })),
          in_waves_(pieces_ > 1 || pairs_) {}

    std::int64_t stages() const { return stages_; }
    std::int64_t pieces() const { return pieces_; }
    bool pairs() const { return pairs_; }        ///< a forward and a backward run as one task
    bool in_waves() const { return in_waves_; }  ///< order is interleaved, or has pairs

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

/// Rounds (p micro-batches of all pieces) that are watched before the rest is extrapolated although
/// it does not repeat yet; most do after three. And rounds that are run afterwards, so that stages
/// which went their own way meet again.
constexpr std::int64_t kWatchedRounds = 12;
constexpr std::int64_t kWatchedInterleaved = 24;  // one state a round; sends settle late
constexpr std::int64_t kMixedRounds = 2;

std::size_t size(std::int64_t value) {
    return static_cast<std::size_t>(value);
}

class OneFOneB {
  public:
    OneFOneB(const PipelineInput& input, bool keep_tasks)
        : order_(input),
          stages_(input.stages),
          total_(input.micro_batches * input.pieces),
          send_(input.stages > 1 ? input.send : 0),
          keep_tasks_(keep_tasks),
          watching_(!keep_tasks),
          rows_(input.pieces == 1 ? 1 : stages_ * input.pieces),
          state_(3 * size(stages_)),
          steady_(state_.size(), size(rows_ == 1 ? kWatchedRounds * stages_ : kWatchedInterleaved),
                  size(rows_ == 1 ? 2 * stages_ : kWatchedInterleaved)) {
        fill_tables();
        for (std::int64_t s = 0; s < stages_; ++s) {
            result_.busy.push_back(order_.pairs() ? 0 : apart(s, input.micro_batches));
            result_.held.push_back(std::min(total_, order_.warm_up(s) + 1));
        }
    }

    PipelineResult run() {
        for (std::int64_t t = first_iteration(); t - skew(0) < total_; ++t) {
            if (order_.pairs())
                iterate<true>(t);
            else
                iterate<false>(t);
            if (watching_) watch(t);
        }
        result_.seconds = *std::max_element(state_.begin(), state_.end());
        return std::move(result_);
    }

  private:
    /// Seconds of a stage's tasks without pairs.
    double apart(std::int64_t stage, std::int64_t micro_batches) const {
        double seconds = 0;
        for (std::int64_t c = 0; c < order_.pieces(); ++c)
            seconds += order_.time(stage, c).forward + order_.time(stage, c).backward;
        return seconds * static_cast<double>(micro_batches);
    }

    std::int64_t skew(std::int64_t stage) const {
        return order_.in_waves() ? stages_ - 1 - stage : 0;
    }
    /// The iteration with F(0) of stage 0.
    std::int64_t first_iteration() const { return skew(0) - order_.warm_up(0); }
    std::int64_t row(std::int64_t t) const {
        return rows_ == 1 ? 0 : (t - first_iteration()) % rows_;
    }

    /// Fills in what iterations take: it repeats after a round, p micro-batches of all pieces.
    void fill_tables() {
        forward_.resize(size(rows_ * stages_));
        backward_.resize(forward_.size());
        if (order_.pairs()) pair_.resize(forward_.size());
        awaits_last_.resize(size(rows_));
        awaits_first_.resize(size(rows_));
        for (std::int64_t row = 0; row < rows_; ++row) {
            for (std::int64_t s = 0; s < stages_; ++s) {
                // Rounds later, where no number is below 0.
                const std::int64_t i = row + first_iteration() - skew(s) + 4 * rows_ * stages_;
                const std::int64_t a = order_.piece_forward(i + order_.warm_up(s));
                const std::int64_t b = order_.piece_backward(i);
                const std::size_t at = size(row * stages_ + s);
                forward_[at] = order_.time(s, a).forward;
                backward_[at] = order_.time(s, b).backward;
                if (order_.pairs()) pair_[at] = pair_seconds(order_.time(s, a), order_.time(s, b));
                if (s == 0) awaits_last_[size(row)] = a > 0;
                if (s == stages_ - 1) awaits_first_[size(row)] = b < order_.pieces() - 1;
            }
        }
    }

    template <bool pairs>
    void iterate(std::int64_t t) {
        double* const free = state_.data();
        double* const forward_end = free + stages_;
        double* const backward_end = forward_end + stages_;
        const std::size_t now = size(row(t));
        const double from_last = awaits_last_[now] ? forward_end[stages_ - 1] + send_ : 0;
        double above = awaits_first_[now] ? backward_end[0] + send_ : 0;
        // Downwards: what comes from the stage below is still that of the iteration before.
        for (std::int64_t s = stages_ - 1; s >= 0; --s) {
            const std::int64_t i = t - skew(s);
            const std::int64_t k = i + order_.warm_up(s);
            const bool has_forward = k >= 0 && k < total_;
            const bool has_backward = i >= 0 && i < total_;
            const double below = s > 0 ? forward_end[s - 1] + send_ : from_last;
            const double before = backward_end[s];
            const std::size_t at = now * size(stages_) + size(s);
            if (pairs && has_forward && has_backward) {
                const double begin = std::max({free[s], below, above});
                free[s] = forward_end[s] = backward_end[s] = begin + pair_[at];
                result_.busy[size(s)] += pair_[at];
                if (keep_tasks_) keep(TaskWork::pair, s, k, begin);
            } else {
                if (has_forward) {
                    const double begin = std::max(free[s], below);
                    free[s] = forward_end[s] = begin + forward_[at];
                    if (pairs) result_.busy[size(s)] += forward_[at];
                    if (keep_tasks_) keep(TaskWork::forward, s, k, begin);
                }
                if (has_backward) {
                    const double begin = std::max(free[s], above);
                    free[s] = backward_end[s] = begin + backward_[at];
                    if (pairs) result_.busy[size(s)] += backward_[at];
                    if (keep_tasks_) keep(TaskWork::backward, s, i, begin);
                }
            }
            above = (order_.in_waves() ? before : backward_end[s]) + send_;
        }
    }

    /// After iteration t: once all stages have both, leaves out rounds that can be added instead.
    void watch(std::int64_t t) {
        const std::int64_t left = total_ - 1 - t + first_iteration();  // with both on all stages
        if (t < skew(0) || left <= 0 || (t - skew(0)) % rows_ != 0) return;
        const bool repeats = steady_.add(state_);
        if (!repeats && !steady_.full()) return;
        watching_ = false;
        const std::int64_t lag = repeats ? static_cast<std::int64_t>(steady_.lag()) : 1;
        const std::int64_t mixed = repeats ? 0 : kMixedRounds * stages_ * order_.pieces();
        const std::int64_t rounds = (left - mixed) / rows_ / lag * lag;
        if (rounds <= 0) return;
        steady_.skip(state_, static_cast<double>(rounds));
        total_ -= rounds * rows_;
        for (std::size_t at = 0; at < pair_.size(); ++at)
            result_.busy[at % size(stages_)] += static_cast<double>(rounds) * pair_[at];
    }

    /// Keeps the task that ends when its stage is free again; `number` of a pair is the forward's.
    void keep(TaskWork work, std::int64_t s, std::int64_t number, double begin) {
        const std::int64_t other = work == TaskWork::pair ? number - order_.warm_up(s) : number;
        const std::int64_t other_piece =
            work == TaskWork::forward ? order_.piece_forward(other) : order_.piece_backward(other);
        const std::int64_t piece =
            work == TaskWork::backward ? other_piece : order_.piece_forward(number);
        result_.tasks.push_back({.work = work,
                                 .stage = static_cast<int>(s),
                                 .piece = static_cast<int>(piece),
                                 .other_piece = static_cast<int>(other_piece),
                                 .micro_batch = order_.micro_batch(number),
                                 .other = order_.micro_batch(other),
                                 .begin = begin,
                                 .end = state_[size(s)]});
    }

    OneFOneBOrder order_;
    std::int64_t stages_;
    std::int64_t total_;  ///< forwards of a stage that are run
    double send_;
    bool keep_tasks_;
    bool watching_;
    std::int64_t rows_;            ///< iterations of a round
    std::vector<double> forward_;  ///< seconds by row and stage
    std::vector<double> backward_;
    std::vector<double> pair_;
    std::vector<char> awaits_last_;   ///< by row: stage 0 goes on with what the last stage made
    std::vector<char> awaits_first_;  ///< by row: the last stage with what stage 0 made, backwards
    std::vector<double> state_;       ///< free, end of last forward, of last backward: by stage
    SteadyState steady_;
    PipelineResult result_;
};

}  // namespace

PipelineResult run_one_f_one_b(const PipelineInput& input, bool keep_tasks) {
    return OneFOneB(input, keep_tasks).run();
}

}  // namespace moehub
