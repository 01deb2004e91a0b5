// A step of a serving engine, and requests that are made of steps.
#include "base/input_error.hpp"
#include "study/serving/operators.hpp"

#include <moehub/serving.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace moehub {
namespace {

[[noreturn]] void refuse(std::string_view what, int found, const std::string& allowed) {
    throw input_error("{}: found {}, allowed: {}", what, found, allowed);
}

void require_divides(std::string_view what, int by, std::string_view whole, int value) {
    if (value % by != 0) refuse(what, by, fmt::format("a divisor of {}, {}", whole, value));
}

void check_experts(const Model& model, const ServingLayout& layout) {
    if (layout.moe_tp * layout.moe_ep != layout.gpus())
        throw input_error(
            "layout: found moe_tp {} × moe_ep {}, allowed: as many GPUs as attention has, {} × {}",
            layout.moe_tp, layout.moe_ep, layout.attention_tp, layout.attention_dp);
    require_divides("moe_tp", layout.moe_tp, "the experts' width", model.expert_ffn);
    if (layout.moe_ep > model.experts)
        refuse("moe_ep", layout.moe_ep, fmt::format("at most the experts, {}", model.experts));
}

double total_of(const std::vector<StepOperator>& operators, OperatorKind kind) {
    double seconds = 0;
    for (const StepOperator& one : operators)
        if (one.kind == kind) seconds += one.total();
    return seconds;
}

double d(std::int64_t value) {
    return static_cast<double>(value);
}

struct Pace {
    const ServingClock& clock;
    const RequestLoad& load;

    double context() const { return d(load.input) + d(load.output) / 2; }

    StepLoad decoding(std::int64_t requests) const {
        return {.requests = requests, .context = context(), .tokens_per_request = 1 + load.drafts};
    }

    double seconds(const StepLoad& step) const {
        double all = clock.step(step).seconds;
        if (load.drafts > 0 && step.requests > 0)
            all += load.drafts * clock.draft_seconds(decoding(step.requests));
        return all;
    }

    /// A step's time with `prompts` more to read, less that of decoding alone.
    double beside(std::int64_t requests, std::int64_t prompts, double alone) const {
        const EngineSpec& engine = clock.what().engine;
        StepLoad step = decoding(requests);
        if (!engine.mixed_steps) step.requests = 0;
        const std::int64_t pieces = (load.input + engine.step_tokens - 1) / engine.step_tokens;
        step.prompts = prompts;
        step.prompt_tokens = (load.input + pieces - 1) / pieces;
        step.prompt_context = (load.input - step.prompt_tokens) / 2;
        const double with = seconds(step);
        return d(pieces) * (engine.mixed_steps ? std::max(0.0, with - alone) : with);
    }
};

void require_positive(std::string_view what, std::int64_t value) {
    if (value < 1) throw input_error("{}: found {}, allowed: 1 or more", what, value);
}

}  // namespace

void check(const ServingCase& what) {
    check(what.model);
    check(what.engine);
    const ServingLayout& layout = what.layout;
    const Model& model = what.model;
    for (const auto& [name, value] :
         {std::pair{"attention_tp", layout.attention_tp},
          std::pair{"attention_dp", layout.attention_dp}, std::pair{"moe_tp", layout.moe_tp},
          std::pair{"moe_ep", layout.moe_ep}})
        if (value < 1 || value > 65535) refuse(name, value, "1 to 65535");
    const int there = what.machine.gpus();
    if (static_cast<long>(layout.attention_tp) * layout.attention_dp > there)
        throw input_error("layout: found {} × {} GPUs, allowed: at most {}'s {}",
                          layout.attention_tp, layout.attention_dp, what.machine.name, there);
    require_divides("attention_tp", layout.attention_tp, "the heads", model.attention.heads);
    const int kv_heads = model.attention.kv_heads;
    if (layout.attention_tp < kv_heads)
        require_divides("attention_tp", layout.attention_tp, "the key heads", kv_heads);
    if (model.dense_ffn > 0)
        require_divides("attention_tp", layout.attention_tp, "the FFN's width", model.dense_ffn);
    if (model.shared_experts > 0)
        require_divides("attention_tp", layout.attention_tp, "the shared experts' width",
                        model.shared_experts * model.shared_ffn);
    if (model.experts > 0) check_experts(model, layout);
    if (!(what.expert_skew >= 0 && what.expert_skew <= 10))
        throw input_error("expert_skew: found {}, allowed: 0 to 10", what.expert_skew);
}

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

// From steps to requests, at a steady state of requests alike.
//
// Decoding alone: tpot = step(requests, input + output / 2) / (1 + accepted guesses).
// With prompts: a request brings one prompt for every output / (1 + accepted) steps, so that
// f = requests · (1 + accepted) / output prompts come with a step, on average. Up to one, a share
// f of the steps reads one prompt whole; beyond, every step reads f, as many as the engine takes
// in one step at most. Those that find no room wait, and fewer requests decode.

RequestTimes request_times(const ServingClock& clock, const RequestLoad& load) {
    require_positive("input", load.input);
    require_positive("output", load.output);
    require_positive("requests", load.requests);
    const ServingLayout& layout = clock.what().layout;
    const std::int64_t room =
        serving_memory(clock.what()).most_requests(d(load.input + load.output));
    if (room == 0)
        throw input_error("memory: found no room for a request of {} tokens",
                          load.input + load.output);
    const double per_step = 1 + load.accepted;
    RequestTimes times;
    times.running = std::min(load.requests, room * layout.attention_dp);
    const Pace pace{clock, load};
    if (!load.prefills) {
        times.tpot = pace.seconds(pace.decoding(times.running)) / per_step;
    } else {
        const std::int64_t at_once =
            std::max<std::int64_t>(1, clock.what().engine.step_tokens / load.input) *
            layout.attention_dp;
        const double steps = d(load.output) / per_step;
        times.running =
            std::min(times.running, static_cast<std::int64_t>(std::ceil(d(at_once) * steps)));
        const double arriving = d(times.running) / steps;
        const auto together = std::clamp<std::int64_t>(std::llround(arriving), 1, at_once);
        const Gpu& gpu = clock.what().machine.gpu;
        const double host = to_seconds(clock.what().engine.overheads(gpu.generation).host_mixed);
        const double alone = pace.seconds(pace.decoding(times.running));
        times.prefill = pace.beside(times.running, together, alone);
        times.tpot = (host + alone + arriving / d(together) * times.prefill) / per_step;
    }
    times.tokens_per_second = d(times.running) / times.tpot / layout.gpus();
    return times;
}

}  // namespace moehub
