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
//
// Orders are run against what they need: a step starts when its stage is free and its inputs have
// come from its neighbours; a stage goes on until it lacks one. What repetition j of the pairs of
// pairs needs was made in repetition j or before on every stage. So all stages can be halted after
// repetition j, and there rounds are left out.
#include "plan/pipeline/schedules.hpp"

#include <array>
#include <initializer_list>
#include <stdexcept>

namespace moehub {
namespace {

struct DualPipeStep {
    TaskWork work = TaskWork::forward;
    /// 1: the step is for micro-batches that entered at the other half's end; a pair's forward is,
    /// its backward is not. Weights take what has waited longest, whichever it is.
    int far = 0;
};

/// The order of one stage's tasks.
class DualPipeOrder {
    using enum TaskWork;

  public:
    DualPipeOrder(int stages, int stage)
        : half_(stages / 2),
          from_end_(std::min(stage, stages - 1 - stage)),
          second_half_(stage >= half_ ? 1 : 0) {
        using Steps = std::vector<DualPipeStep>;
        const auto add = [](Steps& to, int times, std::initializer_list<DualPipeStep> steps) {
            for (int i = 0; i < times; ++i) to.insert(to.end(), steps);
        };
        const int inside = half_ - from_end_ - 1;
        add(opening_, 2 * inside, {{forward, 0}});
        add(opening_, from_end_ + 1, {{forward, 0}, {forward, 1}});
        add(opening_, inside, {{backward_inputs, 1}, {weights, 1}, {forward, 1}});
        add(opening_, middle(), {{forward, 0}, {backward, 1}});
        add(closing_, inside, {{backward, 1}, {pair, 1}});
        for (int i = 0; i < 2 * (from_end_ + 1); ++i)
            closing_.push_back({i <= from_end_ ? backward : backward_inputs, 1 - i % 2});
        add(closing_, inside, {{weights, 0}, {backward_inputs, 0}});
        add(closing_, from_end_ + 1, {{weights, 0}});
    }

    /// How many steps there are with n micro-batches from each end.
    std::int64_t steps(std::int64_t n) const {
        return steps_until(repeated(n) - 1) + static_cast<std::int64_t>(closing_.size());
    }
    /// How often pairs of pairs are repeated, which differs with n.
    std::int64_t repeated(std::int64_t n) const { return n - 2 * half_ + from_end_ + 1; }
    /// How many steps there are until the end of repetition j.
    std::int64_t steps_until(std::int64_t j) const {
        return static_cast<std::int64_t>(opening_.size()) + 2 * (j + 1) - middle();
    }
    DualPipeStep step(std::int64_t at, std::int64_t n) const {
        const auto opening = static_cast<std::int64_t>(opening_.size());
        if (at < opening) return opening_[static_cast<std::size_t>(at)];
        const std::int64_t closing = steps_until(repeated(n) - 1);
        if (at >= closing) return closing_[static_cast<std::size_t>(at - closing)];
        return {pair, static_cast<int>((at - opening + middle()) % 2)};
    }

    /// Where a step's micro-batches entered: 0, at stage 0; 1, at the last.
    std::size_t direction(int far) const { return static_cast<std::size_t>(far ^ second_half_); }

  private:
    /// 1: the stage is one of the two without overlap in their first pair, which makes the bubble
    /// smaller.
    int middle() const { return from_end_ == half_ - 1 ? 1 : 0; }

    int half_;
    int from_end_;
    int second_half_;
    std::vector<DualPipeStep> opening_;
    std::vector<DualPipeStep> closing_;
};

/// Repetitions, for each stage, that are watched before the rest is extrapolated although it does
/// not repeat yet, and that are run afterwards, so that stages which went their own way meet again.
constexpr std::int64_t kWatchedRepetitions = 6;
constexpr std::int64_t kMixedRepetitions = 2;

constexpr double kNotYet = -1;

struct Stage {
    /// Gradients of weights that a backward left for later.
    struct Waiting {
        std::size_t direction;
        std::int64_t micro_batch;
    };
    explicit Stage(DualPipeOrder order_) : order(std::move(order_)) {}

    DualPipeOrder order;
    std::array<PieceTime, 2> times;  ///< times by direction
    std::array<double, 2> pairs{};   ///< seconds of a pair by direction of the forward
    std::int64_t at = 0;             ///< steps done
    double free = 0;
    double odd = 0;  ///< end of the last pair whose forward is near: its messages may be under way
    double busy = 0;
    std::array<std::int64_t, 2> forwards{};  ///< forwards done, by direction
    std::array<std::int64_t, 2> backwards{};
    std::vector<Waiting> waiting;
    std::size_t weights = 0;  ///< how many of `waiting` are done
    std::int64_t held = 0;
    std::int64_t most_held = 0;
};

class DualPipe {
    using enum TaskWork;

  public:
    DualPipe(const PipelineInput& input, bool keep_tasks)
        : stages_(static_cast<std::size_t>(input.stages)),
          n_(input.micro_batches / 2),
          all_(n_),
          send_(input.send),
          keep_tasks_(keep_tasks),
          watched_(kWatchedRepetitions * input.stages),
          mixed_(kMixedRepetitions * input.stages) {
        // With a jump no more micro-batches than these are run from each end.
        const std::int64_t most = input.stages + 2 * watched_ + mixed_;
        room_ = static_cast<std::size_t>(keep_tasks ? n_ : std::min(n_, most));
        ends_.assign(4 * stages_ * room_, kNotYet);
        run_.reserve(stages_);
        for (std::size_t s = 0; s < stages_; ++s) {
            Stage& stage = run_.emplace_back(DualPipeOrder(input.stages, static_cast<int>(s)));
            stage.times = {input.times[s], input.times[stages_ - 1 - s]};
            for (std::size_t d = 0; d < 2; ++d)
                stage.pairs[d] = pair_seconds(stage.times[d], stage.times[1 - d]);
            stage.waiting.reserve(stages_);
        }
    }

    PipelineResult run() {
        if (!keep_tasks_) leave_out();
        until([this](const Stage& stage) { return stage.order.steps(n_); });
        for (const Stage& stage : run_) {
            result_.seconds = std::max(result_.seconds, stage.free);
            result_.busy.push_back(stage.busy);
            result_.held.push_back(stage.most_held);
        }
        return std::move(result_);
    }

  private:
    double& forward_end(std::size_t d, std::size_t s, std::int64_t j) {
        return ends_[(d * stages_ + s) * room_ + static_cast<std::size_t>(j)];
    }
    double& backward_end(std::size_t d, std::size_t s, std::int64_t j) {
        return ends_[((d + 2) * stages_ + s) * room_ + static_cast<std::size_t>(j)];
    }

    /// When the step's input is there; 0 where none is needed.
    double forward_input(std::size_t d, std::size_t s) {
        if (s == (d == 0 ? 0 : stages_ - 1)) return 0;
        return sent(forward_end(d, d == 0 ? s - 1 : s + 1, run_[s].forwards[d]));
    }
    double backward_input(std::size_t d, std::size_t s) {
        if (s == (d == 0 ? stages_ - 1 : 0)) return 0;
        return sent(backward_end(d, d == 0 ? s + 1 : s - 1, run_[s].backwards[d]));
    }
    double sent(double end) const { return end == kNotYet ? kNotYet : end + send_; }

    /// Runs every stage to the step that `limit` names for it.
    template <class Limit>
    void until(const Limit& limit) {
        bool moved = true;
        while (moved) {
            moved = false;
            // From the middle outwards: the second pair of a repetition comes that way.
            for (std::size_t i = 0; i < stages_; ++i) {
                const std::size_t near = stages_ / 2 - 1 - i / 2;
                const std::size_t s = i % 2 == 0 ? near : stages_ - 1 - near;
                const std::int64_t goal = limit(run_[s]);
                while (run_[s].at < goal && step(s)) moved = true;
            }
        }
        for (const Stage& stage : run_)
            if (stage.at < limit(stage)) throw std::logic_error("DualPipe's stages wait in a ring");
    }

    /// Runs one step of a stage; false: an input is missing.
    bool step(std::size_t s) {
        Stage& stage = run_[s];
        const DualPipeStep next = stage.order.step(stage.at, n_);
        const std::size_t d = next.work == weights ? stage.waiting[stage.weights].direction
                                                   : stage.order.direction(next.far);
        const PieceTime& time = stage.times[d];
        double input = 0;
        if (next.work == forward || next.work == pair) input = forward_input(d, s);
        if (input == kNotYet) return false;
        if (is_backward(next.work) || next.work == pair) {
            const double other = backward_input(next.work == pair ? 1 - d : d, s);
            if (other == kNotYet) return false;
            input = std::max(input, other);
        }
        switch (next.work) {
            case forward:
                work(s, next.work, d, input, time.forward);
                forward_done(s, d);
                break;
            case backward:
            case backward_inputs:
                work(s, next.work, d, input,
                     time.backward - (next.work == backward_inputs ? time.weights : 0));
                backward_done(s, d, next.work == backward_inputs);
                break;
            case pair:
                work(s, next.work, d, input, stage.pairs[d]);
                forward_done(s, d);
                backward_done(s, 1 - d, false);
                if (next.far == 0) stage.odd = stage.free;
                break;
            case weights:
                work(s, next.work, d, input, time.weights);
                ++stage.weights;
                --stage.held;
                break;
        }
        ++stage.at;
        return true;
    }

    void work(std::size_t s, TaskWork what, std::size_t d, double input, double seconds) {
        Stage& stage = run_[s];
        const double begin = std::max(stage.free, input);
        stage.free = begin + seconds;
        stage.busy += seconds;
        if (keep_tasks_) keep(s, what, d, begin);
    }

    void forward_done(std::size_t s, std::size_t d) {
        Stage& stage = run_[s];
        forward_end(d, s, stage.forwards[d]++) = stage.free;
        stage.most_held = std::max(stage.most_held, ++stage.held);
    }

    void backward_done(std::size_t s, std::size_t d, bool leave_weights) {
        Stage& stage = run_[s];
        if (leave_weights)
            stage.waiting.push_back({d, stage.backwards[d]});
        else
            --stage.held;
        backward_end(d, s, stage.backwards[d]++) = stage.free;
    }

    void keep(std::size_t s, TaskWork what, std::size_t d, double begin) {
        const Stage& stage = run_[s];
        const auto entered_last = [this](std::size_t direction) {
            return static_cast<std::int64_t>(direction) * all_;
        };
        PipelineTask task{.work = what,
                          .stage = static_cast<int>(s),
                          .piece = static_cast<int>(d),
                          .other_piece = static_cast<int>(what == pair ? 1 - d : d),
                          .begin = begin,
                          .end = stage.free};
        task.micro_batch =
            entered_last(d) + (what == forward || what == pair ? stage.forwards[d]
                               : what == weights ? stage.waiting[stage.weights].micro_batch
                                                 : stage.backwards[d]);
        task.other = what == pair ? stage.backwards[1 - d] + entered_last(1 - d) : task.micro_batch;
        result_.tasks.push_back(task);
    }

    /// Runs repetitions until they repeat, and goes on as if many more had been run.
    void leave_out() {
        SteadyState steady(2 * stages_, static_cast<std::size_t>(watched_), 2 * stages_);
        std::vector<double> state(2 * stages_);
        bool repeats = false;
        std::int64_t done = 1;  // the first is not like the others in the middle
        while (!repeats && !steady.full() && done < run_[0].order.repeated(n_)) {
            until([done](const Stage& stage) { return stage.order.steps_until(done); });
            ++done;
            for (std::size_t s = 0; s < stages_; ++s) {
                state[s] = run_[s].free;
                state[stages_ + s] = run_[s].odd;
            }
            repeats = steady.add(state);
        }
        const auto lag = static_cast<std::int64_t>(repeats ? steady.lag() : 1);
        const std::int64_t left = run_[0].order.repeated(n_) - done - (repeats ? 0 : mixed_);
        const std::int64_t rounds = left / lag * lag;
        if (rounds <= 0) return;
        steady.skip(state, static_cast<double>(rounds));
        n_ -= rounds;
        for (std::size_t s = 0; s < stages_; ++s) {
            Stage& stage = run_[s];
            stage.free = state[s];
            stage.odd = state[stages_ + s];
            stage.busy += static_cast<double>(rounds) * (stage.pairs[0] + stage.pairs[1]);
            const std::size_t near = stage.order.direction(0);
            forward_end(near, s, stage.forwards[near] - 1) = stage.odd;
            backward_end(1 - near, s, stage.backwards[1 - near] - 1) = stage.odd;
        }
    }

    std::size_t stages_;
    std::int64_t n_;    ///< micro-batches from each end that are run
    std::int64_t all_;  ///< micro-batches from each end that there are
    double send_;
    bool keep_tasks_;
    std::int64_t watched_;
    std::int64_t mixed_;
    std::size_t room_ = 0;      ///< micro-batches in ends_
    std::vector<double> ends_;  ///< ends by forward, backward; direction; stage; micro-batch
    std::vector<Stage> run_;
    PipelineResult result_;
};

}  // namespace

PipelineResult run_dualpipe(const PipelineInput& input, bool keep_tasks) {
    return DualPipe(input, keep_tasks).run();
}

}  // namespace moehub
