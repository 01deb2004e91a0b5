#include "plan/step_model.hpp"

#include <moehub/error.hpp>
#include <moehub/training.hpp>

#include <tuple>
#include <utility>

#include <fmt/format.h>

namespace moehub {

/// What copies of a clock share, and what each has for itself.
class TrainingTables {
  public:
    explicit TrainingTables(const TrainingRun& run)
        : communication(std::make_shared<Communication>(run.machine, run.model, run.routing)) {}

    std::shared_ptr<Communication> communication;
};

TrainingClock::TrainingClock(TrainingRun run) : run_(std::move(run)) {
    check(run_);
    tables_ = std::make_shared<TrainingTables>(run_);
    model_ = std::make_unique<StepModel>(run_, tables_->communication);
}

TrainingClock::TrainingClock(const TrainingClock& other)
    : run_(other.run_),
      tables_(other.tables_),
      model_(std::make_unique<StepModel>(run_, tables_->communication)) {}

TrainingClock::TrainingClock(const TrainingClock& other, TrainerSpec trainer)
    : run_(other.run_), tables_(other.tables_) {
    run_.trainer = std::move(trainer);
    check(run_);
    model_ = std::make_unique<StepModel>(run_, tables_->communication);
}

TrainingClock::TrainingClock(TrainingRun run, const TrainingClock& other)
    : run_(std::move(run)), tables_(other.tables_) {
    check(run_);
    const auto shape = [](const TrainingRun& one) {
        const Model& m = one.model;
        return std::tuple(one.machine.name, one.gpus(), to_string(one.routing), m.name, m.hidden,
                          m.experts, m.top_k, m.expert_ffn);
    };
    if (shape(run_) != shape(other.run_))
        throw InputError(
            "clocks share communication of one machine, model and routing: these differ");
    model_ = std::make_unique<StepModel>(run_, tables_->communication);
}

TrainingClock::~TrainingClock() = default;

const TrainingRun& TrainingClock::run() const {
    return run_;
}

TrainingStep TrainingClock::step(const ParallelLayout& layout) {
    if (const std::string why = why_not(run_, layout); !why.empty()) throw InputError(why);
    return model_->step(layout, false);
}

TrainingStep TrainingClock::exact(const ParallelLayout& layout) {
    if (const std::string why = why_not(run_, layout); !why.empty()) throw InputError(why);
    return model_->step(layout, true);
}

double TrainingClock::least_seconds(const ParallelLayout& layout) {
    return model_->least_seconds(layout);
}

std::string TrainingClock::picture(const ParallelLayout& layout, int width) {
    if (const std::string why = why_not(run_, layout); !why.empty()) throw InputError(why);
    if (layout.pp == 1) return "";
    const int shown = layout.overlap == PassOverlap::dualpipe ? 3 * layout.pp : 2 * layout.pp;
    const std::int64_t at_a_time =
        run_.gpus() / (std::int64_t{layout.tp} * layout.cp * layout.pp) * layout.micro_batch;
    const std::int64_t all = run_.global_batch / at_a_time;
    const std::string drawn = draw_pipeline(model_->pipeline(layout, shown), width);
    if (all <= shown) return drawn;
    return fmt::format(
        "Drawn with {} of {} micro-batches: filling and draining weigh more than in the step\n{}",
        shown, all, drawn);
}

}  // namespace moehub
