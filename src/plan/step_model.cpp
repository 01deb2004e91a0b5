/// A step: the pipeline of all micro-batches, then what is done once. The parts are those of the
/// stage that is busy longest; the pipeline's time beyond it is the bubble.
#include "plan/step_model.hpp"

#include <moehub/error.hpp>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace moehub {
namespace {

/// Operators that a host issues for a pass through a piece of a pipeline: messages received and
/// sent, buffers, the schedule itself.
constexpr double kPieceOperators = 10;

/// By how much the host is late in a pass through a piece with its messages: what its units leave
/// it hides a part of them.
double late_with_messages(const UnitCounts& counts, const UnitTimes& times,
                          PassTime UnitTime::*pass, double messages) {
    const double spare = sum_over(counts, [&](std::size_t u) {
        const PassTime& one = times[u].*pass;
        return std::max(0.0, one.device() - one.issue);
    });
    return std::max(0.0, messages - spare);
}

/// Seconds of a piece's forward beside another micro-batch's backward: rows travel while kernels
/// run, which have fewer SMs meanwhile. Other communication hides none.
double pair_of(const UnitCounts& counts, const UnitTimes& times, int sms, double messages) {
    const auto both = [&](const auto& of, double start = 0) {
        return sum_over(
            counts, [&](std::size_t u) { return of(times[u].forward) + of(times[u].backward); },
            start);
    };
    int held = 0;
    for (const UnitTime& one : times) held = std::max(held, one.sms);
    const double alone = both([](const PassTime& pass) { return pass.ep_alone; });
    const double kernels = both([](const PassTime& pass) { return pass.compute(); });
    const double hidden = std::min(alone, kernels);
    const double slower = hidden * held / std::max(1, sms - held);
    const double all = both([](const PassTime& pass) { return pass.device(); });
    return std::max(all - hidden + slower,
                    both([](const PassTime& pass) { return pass.issue; }, messages));
}

void add_parts(StepParts& parts, const UnitCounts& counts, const UnitTimes& times, double batches) {
    constexpr double StepParts::*kComputed[] = {&StepParts::attention, &StepParts::dense,
                                                &StepParts::experts, &StepParts::head,
                                                &StepParts::small};
    constexpr std::pair<double StepParts::*, double PassTime::*> kWaited[] = {
        {&StepParts::recomputed, &PassTime::recomputed},
        {&StepParts::tp, &PassTime::tp},
        {&StepParts::cp, &PassTime::cp},
        {&StepParts::ep, &PassTime::ep},
        {&StepParts::dp, &PassTime::dp},
        {&StepParts::imbalance, &PassTime::imbalance},
        {&StepParts::host, &PassTime::host}};
    for (std::size_t u = 0; u < kUnits; ++u)
        for (const PassTime* pass : {&times[u].forward, &times[u].backward}) {
            const double passes = batches * counts[u];
            for (std::size_t part = 0; part < kStepParts; ++part)
                parts.*kComputed[part] += passes * pass->work.seconds[part];
            for (const auto& [part, seconds] : kWaited) parts.*part += passes * pass->*seconds;
        }
}

std::string limit_of(const StepParts& parts) {
    const std::pair<double, const char*> all[] = {{parts.tp, "tensor-parallel communication"},
                                                  {parts.cp, "context-parallel communication"},
                                                  {parts.ep, "exchange of rows"},
                                                  {parts.pp, "pipeline messages"},
                                                  {parts.dp, "data-parallel communication"},
                                                  {parts.bubble, "pipeline bubble"},
                                                  {parts.imbalance, "expert imbalance"},
                                                  {parts.recomputed, "recomputation"},
                                                  {parts.optimizer, "optimizer"},
                                                  {parts.offload, "offloading"},
                                                  {parts.host, "host"},
                                                  {parts.small, "small kernels"}};
    const auto most = std::ranges::max_element(all, {}, [](const auto& one) { return one.first; });
    const double compute = parts.attention + parts.dense + parts.experts + parts.head;
    return most->first < 0.1 * compute ? "products" : most->second;
}

}  // namespace

StepModel::StepModel(const TrainingRun& run, std::shared_ptr<Communication> communication)
    : run_(run),
      kernels_(run),
      communication_(std::move(communication)),
      sequence_(sequence_of(run)),
      flops_per_token_(training_flops(run.model, sequence_, run.trainer.causal_flops, run.mtp)) {}

StepModel::Pieces StepModel::pieces_of(const ParallelLayout& layout, const UnitTimes& times,
                                       bool exact) {
    std::array<double, kUnits> seconds{};
    for (std::size_t u = 0; u < kUnits; ++u)
        seconds[u] = times[u].forward.seconds() + times[u].backward.seconds();
    Pieces pieces;
    pieces.counts = cut(units_of(run_), layout.pp * layout.vpp, seconds);
    PipelineInput& pipeline = pieces.pipeline;
    const bool dual = layout.overlap == PassOverlap::dualpipe;
    pipeline.schedule =
        dual ? PipelineInput::Schedule::dualpipe : PipelineInput::Schedule::one_f_one_b;
    pipeline.stages = layout.pp;
    pipeline.pieces = layout.vpp;
    pipeline.micro_batches = micro_batches_of(run_, layout);
    const TokenShare tokens = tokens_of(layout);
    if (layout.pp > 1)
        pipeline.send = communication_->message(
            run_.gpus() / layout.pp, kBf16 * static_cast<double>(tokens.own()) * run_.model.hidden,
            exact);
    const double host = run_.machine.gpu.host_bandwidth;
    const double messages = layout.pp > 1 ? kPieceOperators * kernels_.eager_launch() : 0;
    for (const UnitCounts& counts : pieces.counts) {
        const double late_forward = late_with_messages(counts, times, &UnitTime::forward, messages);
        const double late_backward =
            late_with_messages(counts, times, &UnitTime::backward, messages);
        PieceTime time;
        time.forward = sum_over(
            counts, [&](std::size_t u) { return times[u].forward.seconds(); }, late_forward);
        time.backward = sum_over(
            counts, [&](std::size_t u) { return times[u].backward.seconds(); }, late_backward);
        time.weights = sum_over(counts, [&](std::size_t u) { return times[u].gradients; });
        const double kept = offloaded(layout, counts);
        time.pair = layout.overlap == PassOverlap::none
                        ? time.forward + time.backward
                        : std::min(time.forward + time.backward,
                                   pair_of(counts, times, run_.machine.gpu.sms, 2 * messages));
        // Tensors move out while the pass runs, in again before the way back.
        const double out = std::max(0.0, kept / host - time.forward);
        const double in = std::max(0.0, kept / host - time.backward);
        time.forward += out;
        time.backward += in;
        time.pair += out + in;
        pipeline.times.push_back(time);
        pieces.late.push_back(late_forward + late_backward);
    }
    return pieces;
}

TrainingStep StepModel::step(const ParallelLayout& layout, bool exact) {
    const UnitTimes times = unit_times(layout, exact);
    const Pieces pieces = pieces_of(layout, times, exact);
    const PipelineResult run = run_pipeline(pieces.pipeline);
    const DataParallelTime once = data_parallel(layout, times, pieces, exact);
    const auto batches = static_cast<double>(pieces.pipeline.micro_batches);
    const auto busiest = static_cast<std::size_t>(
        std::max_element(run.busy.begin(), run.busy.end()) - run.busy.begin());

    TrainingStep step;
    step.layout = layout;
    StepParts& parts = step.parts;
    const auto stages = static_cast<std::size_t>(layout.pp);
    const double each = layout.overlap == PassOverlap::dualpipe ? batches / 2 : batches;
    for (const std::size_t piece :
         pieces_of_stage(busiest, stages, pieces.counts.size(), layout.overlap)) {
        add_parts(parts, pieces.counts[piece], times, each);
        parts.host += each * pieces.late[piece];
    }
    // What overlap hides is the exchange of rows, then what the host was late with; what offloading
    // adds is the rest.
    double difference = run.busy[busiest] - parts.sum();
    if (difference < 0)
        for (double* part : {&parts.ep, &parts.host}) {
            const double hidden = std::min(*part, -difference);
            *part -= hidden;
            difference += hidden;
        }
    else
        parts.offload = difference;
    const double idle = run.seconds - run.busy[busiest];
    parts.pp = std::min(idle, 2 * (layout.pp - 1) * pieces.pipeline.send);
    parts.bubble = idle - parts.pp;
    parts.dp += once.sums + once.gather;
    parts.optimizer = once.optimizer;
    parts.offload += once.offload;
    parts.host += to_seconds(run_.trainer.step_host);
    step.seconds = run.seconds + once.sums + once.gather + once.optimizer + once.offload +
                   to_seconds(run_.trainer.step_host);

    const double tokens = static_cast<double>(run_.global_batch) * static_cast<double>(sequence_);
    step.tokens_per_second = tokens / step.seconds / run_.gpus();
    step.flops_per_token = flops_per_token_;
    step.mfu = step.tokens_per_second * flops_per_token_ / run_.machine.gpu.bf16_flops;
    step.memory = memory_of(run_, layout, pieces.counts, run.held);
    step.capacity = static_cast<double>(run_.machine.gpu.hbm_capacity);
    step.host_capacity = static_cast<double>(run_.machine.gpu.host_capacity);
    step.fits = step.memory.sum() <= step.capacity &&
                (step.host_capacity == 0 || step.memory.host <= step.host_capacity);
    step.limit = limit_of(parts);
    step.micro_batches = pieces.pipeline.micro_batches;
    if (exact)
        for (std::size_t i = 0; i < pieces.counts.size(); ++i)
            step.stages.push_back({static_cast<int>(i % stages), static_cast<int>(i / stages),
                                   pieces.pipeline.times[i].forward,
                                   pieces.pipeline.times[i].backward});
    return step;
}

// What a step takes at least, however the model is cut into stages. With W seconds of one
// micro-batch in the whole model, p stages and m micro-batches:
//
//     T ≥ m · W / p                     the busiest stage has the mean at least
//     T ≥ W / (1 − (1 − 1/m)^p)         one piece a stage, nothing overlapped
//
// The second: stage s works m · w(s), and before its first and behind its last task a micro-batch
// passes all stages before it, w(0) + … + w(s − 1). No T is smaller than with all of these equal,
// w(s) = (T − w(0) − … − w(s − 1)) / m.

double StepModel::least_seconds(const ParallelLayout& layout) {
    const UnitTimes times = unit_times(layout, false);
    const UnitCounts all = units_of(run_);
    const bool overlaps = layout.overlap != PassOverlap::none;
    const auto seconds = [&](PassTime UnitTime::*pass) {
        return sum_over(all, [&](std::size_t u) { return (times[u].*pass).seconds(); });
    };
    const double forward = seconds(&UnitTime::forward);
    const double backward = seconds(&UnitTime::backward);
    double device = 0;  // seconds of a GPU but for rows underway
    double issue = 0;
    for (std::size_t u = 0; u < kUnits; ++u)
        for (const PassTime* pass : {&times[u].forward, &times[u].backward}) {
            device += all[u] * (pass->device() - pass->ep_alone);
            issue += all[u] * pass->issue;
        }
    const double kept = offloaded(layout, all);
    const double moved = kept / run_.machine.gpu.host_bandwidth;  // seconds each way
    const double work = (overlaps ? std::max(device, issue) : forward + backward) +
                        std::max(0.0, moved - forward) + std::max(0.0, moved - backward);
    const double ranks =
        static_cast<double>(run_.gpus()) / (double{1} * layout.tp * layout.cp * layout.pp);
    const double batches = static_cast<double>(run_.global_batch) / (ranks * layout.micro_batch);
    double pipeline = batches * work / layout.pp;
    if (!overlaps && layout.vpp == 1) {
        double others = 1;
        for (int stage = 0; stage < layout.pp; ++stage) others *= 1 - 1 / batches;
        pipeline = std::max(pipeline, work / (1 - others));
    }
    const UnitWeights weights = weights_of(run_.model, layout, all);
    const double share =
        layout.sharding == Sharding::none ? weights.sum() : weights.divided(run_, layout);
    double once = kernels_.optimizer(share / layout.pp) + to_seconds(run_.trainer.step_host);
    if (layout.offload.optimizer)
        once += run_.trainer.state_bytes * share / layout.pp / run_.machine.gpu.host_bandwidth;
    return pipeline + once;
}

TrainingClock::TrainingClock(TrainingRun run) : run_(std::move(run)) {
    check(run_);
    communication_ = std::make_shared<Communication>(run_.machine, run_.model, run_.routing);
    model_ = std::make_unique<StepModel>(run_, communication_);
}

TrainingClock::TrainingClock(const TrainingClock& other)
    : run_(other.run_),
      communication_(other.communication_),
      model_(std::make_unique<StepModel>(run_, communication_)) {}

TrainingClock::TrainingClock(const TrainingClock& other, TrainerSpec trainer)
    : run_(other.run_), communication_(other.communication_) {
    run_.trainer = std::move(trainer);
    check(run_);
    model_ = std::make_unique<StepModel>(run_, communication_);
}

TrainingClock::TrainingClock(TrainingRun run, const TrainingClock& other)
    : run_(std::move(run)), communication_(other.communication_) {
    check(run_);
    const auto shape = [](const TrainingRun& one) {
        const Model& m = one.model;
        return std::tuple(one.machine.name, one.gpus(), to_string(one.routing), m.name, m.hidden,
                          m.experts, m.top_k, m.expert_ffn);
    };
    if (shape(run_) != shape(other.run_))
        throw InputError(
            "clocks share communication of one machine, model and routing: these differ");
    model_ = std::make_unique<StepModel>(run_, communication_);
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
    const std::int64_t all = micro_batches_of(run_, layout);
    const std::string drawn = draw_pipeline(model_->pipeline(layout, shown), width);
    if (all <= shown) return drawn;
    return fmt::format(
        "Drawn with {} of {} micro-batches: filling and draining weigh more than in the step\n{}",
        shown, all, drawn);
}

}  // namespace moehub
