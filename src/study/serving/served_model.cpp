/// A step is the sum of its operators: rest + layers · (dispatch + experts + combine). In two
/// halves it is
///
///     once + MoE layers · period + 2 · (dense layers of a half),
///
/// with the period of served_layer.cpp.
#include "base/input_error.hpp"
#include "base/parallel.hpp"
#include "base/quantity.hpp"
#include "sim/gpu/tile.hpp"
#include "study/serving/operators.hpp"
#include "study/serving/served_parts.hpp"

#include <moehub/served_model.hpp>

#include <algorithm>

namespace moehub {
namespace {

StepLoad load_of(const Serving& serving, std::int64_t batch_per_gpu) {
    StepLoad load;
    const std::int64_t batch = batch_per_gpu * serving.gpus();
    if (serving.prefill) {
        load.prompts = batch;
        load.prompt_tokens = serving.context;
    } else {
        load.requests = batch;
        load.context = static_cast<double>(serving.context);
        load.tokens_per_request = 1 + serving.drafts;
    }
    return load;
}

std::int64_t half_of(std::int64_t batch) {
    return (batch + 1) / 2;
}

bool once(const StepOperator& one) {
    return one.kind == OperatorKind::head || one.kind == OperatorKind::sampling ||
           one.kind == OperatorKind::host;
}

/// Whether an operator is a dense layer's FFN or adds one up; all others are in every layer.
bool of_dense_layers(const StepOperator& one, double dense_layers) {
    return (one.kind == OperatorKind::linear || one.kind == OperatorKind::all_reduce) &&
           one.count <= dense_layers;
}

double total(const std::vector<StepOperator>& operators) {
    double seconds = 0;
    for (const StepOperator& one : operators) seconds += one.total();
    return seconds;
}

RestOfStep rest_of(const Serving& serving, const ServingClock& clock, std::int64_t batch_per_gpu) {
    const Model& model = serving.what.model;
    RestOfStep rest;
    rest.operators = clock.rest_operators(load_of(serving, batch_per_gpu));
    const double dense_layers = model.layers - model.moe_layers();
    for (const StepOperator& one : rest.operators) {
        if (once(one))
            rest.once += one.total();
        else if (of_dense_layers(one, dense_layers))
            rest.dense += one.total();
        else
            rest.layer += one.total() / model.layers;
    }
    return rest;
}

void finish(ServedStep& step, const Serving& serving, const PreparedStep& prepared) {
    if (prepared.drafts > 0) {
        step.operators.push_back({"guesses", OperatorKind::linear, 1, prepared.drafts});
        step.seconds += prepared.drafts;
    }
    step.hidden = std::max(0.0, total(step.operators) - step.seconds);
    const double made =
        serving.prefill ? static_cast<double>(serving.context) : 1 + serving.accepted;
    step.tokens_per_second = static_cast<double>(serving.batch_per_gpu) * made / step.seconds;
    if (!serving.prefill) step.tpot = step.seconds / made;
}

/// Times of a half's layer. Kernels beside a dispatch that holds SMs have the other SMs.
HalfLayer half_layer(const Serving& serving, const SystemSpec& system, const PreparedStep& prepared,
                     const MoeTimes& moe) {
    HalfLayer half;
    half.moe = moe;
    half.rest = half.rest_beside = prepared.half.layer;
    half.experts_beside = moe.experts;
    if (moe.dispatch_work > 0) return half;
    Serving less = serving;
    Gpu& gpu = less.what.machine.gpu;
    const int left = gpu.sms - system.communication_sms;
    half.experts_beside *= static_cast<double>(gpu.sms) / left;
    gpu = with_sms(gpu, left);
    half.rest_beside = rest_of(less, ServingClock(less.what), half_of(serving.batch_per_gpu)).layer;
    return half;
}

void check_overlap(const SystemSpec& system, const MoeTimes& moe, std::string_view what) {
    if (moe.dispatch > 0 && (moe.dispatch_work > 0 || system.communication_sms > 0)) return;
    throw input_error(
        "{} cannot overlap {}: {}, allowed: kernels that leave their SMs while rows travel "
        "(deepep-ll) or hold a few (communication_sms)",
        system.name, what,
        moe.dispatch > 0 ? "its dispatch holds all SMs"
                         : "its rows do not move in a step of their own");
}

ServedStep in_two_halves(const Serving& serving, const SystemSpec& system,
                         const PreparedStep& prepared, const MoeTimes& moe) {
    check_overlap(system, moe, "two batches");
    const Model& model = serving.what.model;
    const double layers = model.moe_layers();
    ServedStep step;
    for (const StepOperator& one : prepared.half.operators)
        if (!once(one)) step.operators.push_back({one.name, one.kind, 2 * one.count, one.seconds});
    for (StepOperator& one : operators_of(moe, 2 * layers)) step.operators.push_back(one);
    for (const StepOperator& one : prepared.whole.operators)
        if (once(one)) step.operators.push_back(one);
    const double dense = (model.layers - layers) * prepared.half.layer + prepared.half.dense;
    step.seconds = prepared.whole.once + 2 * dense +
                   layers * two_batch_period(half_layer(serving, system, prepared, moe));
    return step;
}

/// Seconds in which rows travel and SMs are free, at least those that communication does not hold.
double underway(const MoeTimes& moe) {
    return moe.dispatch - moe.dispatch_work + moe.combine - moe.combine_work;
}

ServedStep in_one_piece(const Serving& serving, const PreparedStep& prepared, const MoeTimes& moe) {
    const double layers = serving.what.model.moe_layers();
    ServedStep step;
    step.operators = prepared.whole.operators;
    if (serving.overlap == BatchOverlap::single_batch)
        hide_shared_experts(step.operators, layers * underway(moe));
    else if (serving.what.engine.shared_beside)
        hide_shared_experts(step.operators, layers * moe.experts);
    for (StepOperator& one : operators_of(moe, layers)) step.operators.push_back(one);
    step.seconds = total(step.operators);
    return step;
}

/// Parts of a step in the order of a layer.
constexpr std::pair<OperatorKind, std::string_view> kStepParts[] = {
    {OperatorKind::attention, "attention core"},
    {OperatorKind::linear, "GEMM (dense)"},
    {OperatorKind::router, "GEMM (dense)"},
    {OperatorKind::shared_experts, "GEMM (dense)"},
    {OperatorKind::dispatch, "dispatch"},
    {OperatorKind::experts, "routed experts (MoE)"},
    {OperatorKind::combine, "combine"},
    {OperatorKind::all_reduce, "all-reduces"},
    {OperatorKind::small, "other kernels"},
    {OperatorKind::head, "head and sampling"},
    {OperatorKind::sampling, "head and sampling"},
    {OperatorKind::host, "host and waits"}};

}  // namespace

PreparedStep prepare(const Serving& serving, const ServingClock& clock) {
    PreparedStep made;
    made.whole = rest_of(serving, clock, serving.batch_per_gpu);
    if (serving.overlap == BatchOverlap::two_batch)
        made.half = rest_of(serving, clock, half_of(serving.batch_per_gpu));
    if (serving.drafts > 0)
        made.drafts = serving.drafts * clock.draft_seconds(load_of(serving, serving.batch_per_gpu));
    return made;
}

ServedStep serve_prepared(const Serving& serving, const PreparedStep& prepared,
                          const SystemSpec& named) {
    const SystemSpec system = served_system(named, serving.what.formats);
    const bool halves = serving.overlap == BatchOverlap::two_batch;
    const std::int64_t whole = serving.tokens_per_gpu();
    const std::int64_t tokens =
        halves ? whole / serving.batch_per_gpu * half_of(serving.batch_per_gpu) : whole;
    const MoeTimes moe = moe_times(serving, system, tokens);
    if (serving.overlap == BatchOverlap::single_batch) check_overlap(system, moe, "one batch");
    ServedStep step = halves ? in_two_halves(serving, system, prepared, moe)
                             : in_one_piece(serving, prepared, moe);
    step.system = system.name;
    step.network_busy = moe.network_busy;
    step.busiest_link = moe.busiest_link;
    finish(step, serving, prepared);
    return step;
}

void check_served(const Serving& serving) {
    check(serving);
    if (serving.what.model.moe_layers() > 0) return;
    throw input_error("model {}: found no experts, allowed with systems: a model with experts",
                      quoted(serving.what.model.name));
}

std::vector<ServedStep> serve(const Serving& serving, const std::vector<SystemSpec>& systems,
                              const ServeOptions& options) {
    check_served(serving);
    const PreparedStep prepared = prepare(serving, ServingClock(serving.what, options.costs));
    std::vector<ServedStep> steps(systems.size());
    run_parallel(systems.size(),
                 [&](std::size_t i) { steps[i] = serve_prepared(serving, prepared, systems[i]); },
                 {options.threads, options.progress});
    return steps;
}

ServedStep serve_by_engine(const Serving& serving, const ServeOptions& options) {
    check(serving);
    const bool dense = serving.what.model.moe_layers() == 0;
    if (serving.overlap != BatchOverlap::none)
        throw input_error("overlap: found {}, allowed of {}: none", name_of(serving.overlap),
                          dense ? "a dense model" : "the engine's own MoE layers");
    if (!dense && serving.what.layout.attention_dp > 1 && serving.what.machine.nodes > 1)
        throw input_error(
            "{}'s own MoE layers exchange tokens inside one node, found {} nodes: name a system",
            serving.what.engine.name, serving.what.machine.nodes);
    const ServingClock clock(serving.what, options.costs);
    const ServingStep whole = clock.step(load_of(serving, serving.batch_per_gpu));
    ServedStep step;
    step.system = serving.what.engine.name;
    step.operators = whole.operators;
    step.seconds = whole.seconds;
    PreparedStep prepared;
    if (serving.drafts > 0)
        prepared.drafts =
            serving.drafts * clock.draft_seconds(load_of(serving, serving.batch_per_gpu));
    finish(step, serving, prepared);
    return step;
}

std::vector<std::string_view> served_part_names() {
    std::vector<std::string_view> names;
    for (const auto& [kind, name] : kStepParts)
        if (names.empty() || names.back() != name) names.push_back(name);
    return names;
}

double part_seconds(const ServedStep& step, std::string_view name) {
    double seconds = 0;
    for (const StepOperator& one : step.operators)
        for (const auto& [kind, part] : kStepParts)
            if (one.kind == kind && part == name) seconds += one.total();
    return seconds;
}

std::vector<ServedPart> parts_of(const ServedStep& step) {
    std::vector<ServedPart> parts;
    for (const std::string_view name : served_part_names())
        if (const double seconds = part_seconds(step, name); seconds > 0)
            parts.push_back({std::string(name), seconds});
    return parts;
}

}  // namespace moehub
