/// From steps to requests, at a steady state of requests alike.
///
/// Decoding alone: tpot = step(requests, input + output / 2) / (1 + accepted guesses).
/// With prompts: a request brings one prompt for every output / (1 + accepted) steps, so that
/// f = requests · (1 + accepted) / output prompts come with a step, on average. Up to one, a share
/// f of the steps reads one prompt whole; beyond, every step reads f, as many as the engine takes
/// in one step at most. Those that find no room wait, and fewer requests decode.
#include <moehub/error.hpp>
#include <moehub/serving.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace moehub {
namespace {

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
    if (value < 1) throw InputError(fmt::format("{}: found {}, allowed: 1 or more", what, value));
}

}  // namespace

RequestTimes request_times(const ServingClock& clock, const RequestLoad& load) {
    require_positive("input", load.input);
    require_positive("output", load.output);
    require_positive("requests", load.requests);
    const ServingLayout& layout = clock.what().layout;
    const std::int64_t room =
        serving_memory(clock.what()).most_requests(d(load.input + load.output));
    if (room == 0)
        throw InputError(fmt::format("memory: found no room for a request of {} tokens",
                                     load.input + load.output));
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
