#include "study/serving/operators.hpp"

#include <algorithm>
#include <utility>

namespace moehub {

ServingClock::ServingClock(ServingCase what, std::shared_ptr<ServingCosts> costs)
    : what_(std::move(what)), costs_(std::move(costs)) {
    check(what_);
    if (!costs_) costs_ = std::make_shared<ServingCosts>(what_.machine);
}

std::vector<StepOperator> ServingClock::rest_operators(const StepLoad& load) const {
    const RankLoad rank = rank_load(what_.layout, load);
    OperatorWriter writer(what_, *costs_);
    write_attention(writer, rank);
    write_dense_ffn(writer, rank);
    write_router_and_shared(writer, rank);
    write_ends(writer, rank);
    return writer.take();
}

std::vector<StepOperator> ServingClock::moe_operators(const StepLoad& load) const {
    OperatorWriter writer(what_, *costs_);
    write_moe(writer, rank_load(what_.layout, load));
    return writer.take();
}

namespace {

double total_of(const std::vector<StepOperator>& operators, OperatorKind kind) {
    double seconds = 0;
    for (const StepOperator& one : operators)
        if (one.kind == kind) seconds += one.total();
    return seconds;
}

}  // namespace

void hide_shared_experts(std::vector<StepOperator>& operators, double behind) {
    const double shared = total_of(operators, OperatorKind::shared_experts);
    if (shared == 0) return;
    for (StepOperator& one : operators)
        if (one.kind == OperatorKind::shared_experts)
            one.seconds *= std::max(0.0, shared - behind) / shared;
}

ServingStep ServingClock::step(const StepLoad& load) const {
    ServingStep step;
    step.operators = rest_operators(load);
    for (StepOperator& one : moe_operators(load)) step.operators.push_back(std::move(one));
    if (what_.engine.shared_beside)
        hide_shared_experts(step.operators, total_of(step.operators, OperatorKind::experts));
    for (const StepOperator& one : step.operators) step.seconds += one.total();
    return step;
}

double ServingClock::draft_seconds(const StepLoad& load) const {
    ServingCase one = what_;
    one.model.layers = 1;
    one.model.dense_layers = 0;
    one.model.attention.window_layers = 0;
    for (EngineOverheads* each : {&one.engine.hopper, &one.engine.blackwell}) {
        each->host = 0;
        each->host_request = 0;
    }
    StepLoad next = load;
    next.tokens_per_request = 1;
    return ServingClock(std::move(one), costs_).step(next).seconds;
}

ServingStep step_time(const ServingCase& what, const StepLoad& load) {
    return ServingClock(what).step(load);
}

}  // namespace moehub
