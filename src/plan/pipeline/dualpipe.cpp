// DualPipe's orders, run against what they need: a step starts when its stage is free and its
// inputs have come from its neighbours; a stage goes on until it lacks one.
//
// What repetition j of the pairs of pairs needs was made in repetition j or before on every stage.
// So all stages can be halted after repetition j, and there rounds are left out.
#include "plan/pipeline/dualpipe_order.hpp"
#include "plan/pipeline/schedules.hpp"

#include <array>
#include <stdexcept>

namespace moehub {
namespace {

using StepKind = DualPipeStep::Kind;

/// Repetitions, for each stage, that are watched before the rest is extrapolated although it does
/// not repeat yet, and that are run afterwards, so that stages which went their own way meet again.
constexpr std::int64_t kWatchedRepetitions = 6;
constexpr std::int64_t kMixedRepetitions = 2;

constexpr double kNotYet = -1;

struct Stage {
    explicit Stage(DualPipeOrder order_) : order(std::move(order_)) {}

    DualPipeOrder order;
    std::array<PieceTime, 2> times;  ///< by direction
    std::array<double, 2> pairs{};   ///< by direction of the forward
    std::int64_t at = 0;             ///< steps done
    double free = 0;
    double odd = 0;  ///< end of the last pair whose forward is near: its messages may be under way
    double busy = 0;
    std::array<std::int64_t, 2> forwards{};  ///< done, by direction
    std::array<std::int64_t, 2> backwards{};
    std::vector<std::array<std::int64_t, 2>> waiting;  ///< weights: direction, micro-batch
    std::size_t weights = 0;                           ///< of `waiting`, done
    std::int64_t held = 0;
    std::int64_t most_held = 0;
};

class DualPipe {
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

    /// When the input is there; 0 where none is needed.
    double forward_input(std::size_t d, std::size_t s) {
        if (s == (d == 0 ? 0 : stages_ - 1)) return 0;
        const double end = forward_end(d, d == 0 ? s - 1 : s + 1, run_[s].forwards[d]);
        return end == kNotYet ? kNotYet : end + send_;
    }
    double backward_input(std::size_t d, std::size_t s) {
        if (s == (d == 0 ? stages_ - 1 : 0)) return 0;
        const double end = backward_end(d, d == 0 ? s + 1 : s - 1, run_[s].backwards[d]);
        return end == kNotYet ? kNotYet : end + send_;
    }

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

    /// False: an input is missing.
    bool step(std::size_t s) {
        Stage& stage = run_[s];
        const DualPipeStep next = stage.order.step(stage.at, n_);
        const std::size_t d = stage.order.direction(next.far);
        switch (next.kind) {
            case StepKind::forward: {
                const double input = forward_input(d, s);
                if (input == kNotYet) return false;
                work(s, PipelineTask::Kind::forward, d, input, stage.times[d].forward);
                forward_done(s, d);
                break;
            }
            case StepKind::backward:
            case StepKind::backward_inputs: {
                const double input = backward_input(d, s);
                if (input == kNotYet) return false;
                const bool leave = next.kind == StepKind::backward_inputs;
                const PieceTime& time = stage.times[d];
                work(s, PipelineTask::Kind::backward, d, input,
                     time.backward - (leave ? time.weights : 0));
                backward_done(s, d, leave);
                break;
            }
            case StepKind::pair: {
                const double forward = forward_input(d, s);
                const double backward = backward_input(1 - d, s);
                if (forward == kNotYet || backward == kNotYet) return false;
                work(s, PipelineTask::Kind::pair, d, std::max(forward, backward), stage.pairs[d]);
                forward_done(s, d);
                backward_done(s, 1 - d, false);
                if (next.far == 0) stage.odd = stage.free;
                break;
            }
            case StepKind::weights: {
                const auto direction = static_cast<std::size_t>(stage.waiting[stage.weights][0]);
                work(s, PipelineTask::Kind::weights, direction, 0, stage.times[direction].weights);
                ++stage.weights;
                --stage.held;
                break;
            }
        }
        ++stage.at;
        return true;
    }

    void work(std::size_t s, PipelineTask::Kind kind, std::size_t d, double input, double seconds) {
        Stage& stage = run_[s];
        const double begin = std::max(stage.free, input);
        stage.free = begin + seconds;
        stage.busy += seconds;
        if (keep_tasks_) keep(s, kind, d, begin);
    }

    void forward_done(std::size_t s, std::size_t d) {
        Stage& stage = run_[s];
        forward_end(d, s, stage.forwards[d]++) = stage.free;
        stage.most_held = std::max(stage.most_held, ++stage.held);
    }

    void backward_done(std::size_t s, std::size_t d, bool leave_weights) {
        Stage& stage = run_[s];
        if (leave_weights)
            stage.waiting.push_back({static_cast<std::int64_t>(d), stage.backwards[d]});
        else
            --stage.held;
        backward_end(d, s, stage.backwards[d]++) = stage.free;
    }

    void keep(std::size_t s, PipelineTask::Kind kind, std::size_t d, double begin) {
        const Stage& stage = run_[s];
        PipelineTask task;
        task.kind = kind;
        task.stage = static_cast<int>(s);
        task.piece = static_cast<int>(d);
        task.other_piece = static_cast<int>(kind == PipelineTask::Kind::pair ? 1 - d : d);
        task.micro_batch = kind == PipelineTask::Kind::forward || kind == PipelineTask::Kind::pair
                               ? stage.forwards[d]
                           : kind == PipelineTask::Kind::backward ? stage.backwards[d]
                                                                  : stage.waiting[stage.weights][1];
        task.micro_batch += static_cast<std::int64_t>(d) * all_;
        task.other = kind == PipelineTask::Kind::pair
                         ? stage.backwards[1 - d] + static_cast<std::int64_t>(1 - d) * all_
                         : task.micro_batch;
        task.begin = begin;
        task.end = stage.free;
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
    std::int64_t all_;  ///< that there are
    double send_;
    bool keep_tasks_;
    std::int64_t watched_;
    std::int64_t mixed_;
    std::size_t room_ = 0;      ///< micro-batches in ends_
    std::vector<double> ends_;  ///< forward, backward; direction; stage; micro-batch
    std::vector<Stage> run_;
    PipelineResult result_;
};

}  // namespace

PipelineResult run_dualpipe(const PipelineInput& input, bool keep_tasks) {
    return DualPipe(input, keep_tasks).run();
}

}  // namespace moehub
