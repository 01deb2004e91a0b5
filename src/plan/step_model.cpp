/// A step: the pipeline of all micro-batches, then what is done once. The parts are those of the
/// stage that is busy longest; the pipeline's time beyond it is the bubble.
#include "plan/step_model.hpp"

#include <algorithm>

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
    double spare = 0;
    for (std::size_t u = 0; u < kUnits; ++u) {
        const PassTime& one = times[u].*pass;
        spare += counts[u] * std::max(0.0, one.device() - one.issue);
    }
    return std::max(0.0, messages - spare);
}

/// A piece's forward beside another micro-batch's backward: rows travel while kernels run, which
/// have fewer SMs meanwhile. Other communication hides none.
double pair_of(const UnitCounts& counts, const UnitTimes& times, int sms, double messages) {
    double all = 0;
    double alone = 0;
    double kernels = 0;
    double issue = messages;
    int held = 0;
    for (std::size_t u = 0; u < kUnits; ++u) {
        const UnitTime& one = times[u];
        all += counts[u] * (one.forward.device() + one.backward.device());
        issue += counts[u] * (one.forward.issue + one.backward.issue);
        alone += counts[u] * (one.forward.ep_alone + one.backward.ep_alone);
        kernels += counts[u] * (one.forward.compute() + one.backward.compute());
        held = std::max(held, one.sms);
    }
    const double hidden = std::min(alone, kernels);
    const double slower = hidden * held / std::max(1, sms - held);
    return std::max(all - hidden + slower, issue);
}

void add_parts(StepParts& parts, const UnitCounts& counts, const UnitTimes& times, double batches) {
    for (std::size_t u = 0; u < kUnits; ++u)
        for (const PassTime* pass : {&times[u].forward, &times[u].backward}) {
            const double n = batches * counts[u];
            const auto& seconds = pass->work.seconds;
            parts.attention += n * seconds[static_cast<std::size_t>(Sort::attention)];
            parts.dense += n * seconds[static_cast<std::size_t>(Sort::dense)];
            parts.experts += n * seconds[static_cast<std::size_t>(Sort::experts)];
            parts.head += n * seconds[static_cast<std::size_t>(Sort::head)];
            parts.small += n * seconds[static_cast<std::size_t>(Sort::small)];
            parts.recomputed += n * pass->recomputed;
            parts.tp += n * pass->tp;
            parts.cp += n * pass->cp;
            parts.ep += n * pass->ep;
            parts.dp += n * pass->dp;
            parts.imbalance += n * pass->imbalance;
            parts.host += n * pass->host;
        }
}

std::string limit_of(const StepParts& parts) {
    struct Named {
        const char* name;
        double seconds;
    };
    const Named all[] = {{"tensor-parallel communication", parts.tp},
                         {"context-parallel communication", parts.cp},
                         {"exchange of rows", parts.ep},
                         {"pipeline messages", parts.pp},
                         {"data-parallel communication", parts.dp},
                         {"pipeline bubble", parts.bubble},
                         {"expert imbalance", parts.imbalance},
                         {"recomputation", parts.recomputed},
                         {"optimizer", parts.optimizer},
                         {"offloading", parts.offload},
                         {"host", parts.host},
                         {"small kernels", parts.small}};
    const Named* most =
        std::max_element(std::begin(all), std::end(all),
                         [](const Named& a, const Named& b) { return a.seconds < b.seconds; });
    const double compute = parts.attention + parts.dense + parts.experts + parts.head;
    if (most->seconds < 0.1 * compute) return "products";
    return most->name;
}

}  // namespace

StepModel::StepModel(const TrainingRun& run, std::shared_ptr<Communication> communication)
    : run_(run),
      kernels_(run),
      communication_(std::move(communication)),
      sequence_(run.sequence > 0 ? run.sequence : run.model.sequence),
      flops_per_token_(training_flops(run.model, sequence_, run.trainer.causal_flops, run.mtp)) {}

TokenShare StepModel::tokens_of(const ParallelLayout& layout) const {
    return {layout.micro_batch, sequence_, layout.tp, layout.cp};
}

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
    const std::int64_t ranks = run_.gpus() / (std::int64_t{layout.tp} * layout.cp * layout.pp);
    pipeline.micro_batches = run_.global_batch / (ranks * layout.micro_batch);
    const TokenShare tokens = tokens_of(layout);
    if (layout.pp > 1)
        pipeline.send = communication_->message(
            run_.gpus() / layout.pp, kBf16 * static_cast<double>(tokens.own()) * run_.model.hidden,
            exact);
    const double host = run_.machine.gpu.host_bandwidth;
    const double messages = layout.pp > 1 ? kPieceOperators * kernels_.eager_launch() : 0;
    for (const UnitCounts& counts : pieces.counts) {
        PieceTime time;
        const double late_forward = late_with_messages(counts, times, &UnitTime::forward, messages);
        const double late_backward =
            late_with_messages(counts, times, &UnitTime::backward, messages);
        time.forward = late_forward;
        time.backward = late_backward;
        double kept = 0;
        for (std::size_t u = 0; u < kUnits; ++u) {
            time.forward += counts[u] * times[u].forward.seconds();
            time.backward += counts[u] * times[u].backward.seconds();
            time.weights += counts[u] * times[u].gradients;
            if (layout.offload.activations)
                kept += counts[u] * activations_of(run_, layout, static_cast<Unit>(u));
        }
        time.pair = layout.overlap == PassOverlap::none
                        ? time.forward + time.backward
                        : std::min(time.forward + time.backward,
                                   pair_of(counts, times, run_.machine.gpu.sms, 2 * messages));
        // Out while the pass runs, in again before the way back.
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
    const bool dual = layout.overlap == PassOverlap::dualpipe;
    const double each = dual ? batches / 2 : batches;
    const auto add_piece = [&](std::size_t piece) {
        add_parts(parts, pieces.counts[piece], times, each);
        parts.host += each * pieces.late[piece];
    };
    for (std::size_t i = busiest; i < pieces.counts.size(); i += stages) add_piece(i);
    if (dual) add_piece(stages - 1 - busiest);
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

PipelineResult StepModel::pipeline(const ParallelLayout& layout, std::int64_t micro_batches) {
    Pieces pieces = pieces_of(layout, unit_times(layout, false), false);
    pieces.pipeline.micro_batches = std::min(pieces.pipeline.micro_batches, micro_batches);
    return run_pipeline(pieces.pipeline, true);
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
    double forward = 0;
    double backward = 0;
    double device = 0;  // but for rows underway
    double issue = 0;
    double kept = 0;
    for (std::size_t u = 0; u < kUnits; ++u) {
        forward += all[u] * times[u].forward.seconds();
        backward += all[u] * times[u].backward.seconds();
        for (const PassTime* pass : {&times[u].forward, &times[u].backward}) {
            device += all[u] * (pass->device() - pass->ep_alone);
            issue += all[u] * pass->issue;
        }
        if (layout.offload.activations)
            kept += all[u] * activations_of(run_, layout, static_cast<Unit>(u));
    }
    const double moved = kept / run_.machine.gpu.host_bandwidth;  // each way
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
    const double share = layout.sharding == Sharding::none
                             ? weights.shared + weights.experts
                             : weights.shared / data_group(layout).size +
                                   weights.experts / expert_data_group(layout).size;
    double once = kernels_.optimizer(share / layout.pp) + to_seconds(run_.trainer.step_host);
    if (layout.offload.optimizer)
        once += run_.trainer.state_bytes * share / layout.pp / run_.machine.gpu.host_bandwidth;
    return pipeline + once;
}

}  // namespace moehub
