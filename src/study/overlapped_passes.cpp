#include "study/overlapped_passes.hpp"

#include "sim/gpu/tile.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <optional>
#include <stdexcept>
#include <utility>

namespace moehub {
namespace {

constexpr int kLayers = 256;       // layers that follow one another
constexpr int kSettled = 64;       // first layer of the steady state
constexpr int kUndisturbed = 192;  // last layer that the end does not disturb yet

/// All steps of many layers both ways, and what waits for what.
class Layers {
  public:
    explicit Layers(const OverlappedSteps& steps) {
        for (int layer = 0; layer < kLayers; ++layer) {
            const Ends before = layer > 0 ? ends_.back() : Ends{};
            const Ends before_that = layer > 1 ? ends_[ends_.size() - 2] : Ends{};
            ends_.push_back(add_layer(steps, layer, before, before_that));
        }
    }
    std::vector<LaneStep> list;

  private:
    static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
    struct Ends {  // last step of a layer either way, and of the weights' gradients
        std::size_t forward = kNone;
        std::size_t backward = kNone;
        std::size_t expert_weights = kNone;
        std::size_t attention_weights = kNone;
    };

    std::size_t add(LaneStep step, std::initializer_list<std::size_t> after) {
        for (const std::size_t one : after) {
            if (one == kNone) continue;
            list[one].next.push_back(list.size());
            ++step.missing;
        }
        list.push_back(std::move(step));
        return list.size() - 1;
    }

    Ends add_layer(const OverlappedSteps& steps, int layer, const Ends& before,
                   const Ends& before_that) {
        const auto kernels = [&](KernelTime length, bool backward, bool weights = false) {
            return LaneStep{.length = length,
                            .layer = layer,
                            .backward = backward,
                            .weights = weights,
                            .next = {}};
        };
        const auto rows = [&](Ps length, bool backward) {
            LaneStep step = kernels({length, length}, backward);
            step.lane = Lane::communication;
            return step;
        };
        Ends ends;
        const PassSteps& there = steps.forward;
        std::size_t at =
            add(kernels(there.attention, false), {before.forward, before_that.backward});
        at = add(rows(there.dispatch, false), {at});
        at = add(kernels(there.experts, false), {at});
        ends.forward = add(rows(there.combine, false), {at});

        const PassSteps& back = steps.backward;
        at = add(rows(back.dispatch, true), {before.backward, before_that.forward});
        at = add(kernels(back.experts, true), {at, before.expert_weights});
        ends.expert_weights = add(kernels(back.expert_weights, true, true), {at});
        at = add(rows(back.combine, true), {at});
        ends.backward = add(kernels(back.attention, true), {at, before.attention_weights});
        ends.attention_weights = add(kernels(back.attention_weights, true, true), {ends.backward});
        return ends;
    }

    std::vector<Ends> ends_;
};

OverlappedPair settled(const OverlappedSteps& steps, LaneRule rule) {
    std::array<Ps, kLayers> ends{};
    Ps busy = 0;
    for (const LaneStep& step : run_lanes(Layers(steps).list, rule)) {
        Ps& end = ends[static_cast<std::size_t>(step.layer)];
        end = std::max(end, step.end);
        const bool counts = step.layer > kSettled && step.layer <= kUndisturbed;
        if (counts && step.lane == Lane::compute) busy += step.end - step.begin;
    }
    constexpr Ps kPairs = kUndisturbed - kSettled;
    return {(ends[kUndisturbed] - ends[kSettled]) / kPairs, busy / kPairs};
}

Ps alone(const PassSteps& steps) {
    return steps.attention.alone + steps.experts.alone + steps.expert_weights.alone +
           steps.attention_weights.alone;
}

}  // namespace

Ps OverlappedSteps::compute() const {
    return alone(forward) + alone(backward);
}

Ps OverlappedSteps::communication() const {
    return forward.dispatch + forward.combine + backward.dispatch + backward.combine;
}

OverlappedPair overlap(const OverlappedSteps& steps) {
    OverlappedPair best;
    for (const LaneRule rule :
         {LaneRule::first_come, LaneRule::forward_first, LaneRule::backward_first}) {
        const OverlappedPair pair = settled(steps, rule);
        if (rule == LaneRule::first_come || pair.period < best.period) best = pair;
    }
    // Between two layers in the middle a lane may have done a step less than its share.
    best.period = std::max({best.period, best.busy, steps.communication()});
    return best;
}

namespace {

/// The card with all its SMs, and with those that communication leaves.
struct Cards {
    Gpu all;
    Gpu left;
};

/// What kernels take of a layer when the SMs that communication holds are gone already, or not.
Ps experts_on(const Gpu& gpu, LayerInput input, SystemSpec system, const LayerOptions& options) {
    input.machine.gpu = gpu;
    system.communication_sms = 1;
    return simulate_layer(input, system, options).breakdown.compute;
}

PassSteps simulate_pass(const LayerInput& input, const SystemSpec& system, const Cards& cards,
                        LayerOptions options) {
    PassSteps steps;
    options.verify = false;
    steps.experts = {experts_on(cards.all, input, system, options),
                     experts_on(cards.left, input, system, options)};
    options.compute = false;
    const LayerResult rows = simulate_layer(input, system, options);
    steps.dispatch = rows.first_gemm;
    steps.combine = rows.combine;
    return steps;
}

/// Takes `part` off a step's time and returns it.
KernelTime split_off(KernelTime& from, const KernelTime& part) {
    from.alone -= part.alone;
    from.beside -= part.beside;
    return part;
}

OverlappedSteps simulate_both(const LayerInput& input, const SystemSpec& system, const Cards& cards,
                              LayerOptions options) {
    OverlappedSteps steps;
    options.pass = Pass::forward;
    steps.forward = simulate_pass(input, system, cards, options);
    options.pass = Pass::backward;
    steps.backward = simulate_pass(input, system, cards, options);
    // Weights' gradients are as many operations as inputs', and as the way forward.
    KernelTime& both = steps.backward.experts;
    steps.backward.expert_weights = split_off(both, {both.alone / 2, both.beside / 2});
    return steps;
}

/// Times of a MoE layer's attention; the mean over layers with and without a window.
struct AttentionTime {
    Ps forward = 0;
    Ps backward = 0;
    Ps weights = 0;  ///< gradients of weights, a part of backward
    Ps host = 0;     ///< wait for the host, both ways
};

AttentionTime attention_of(const Model& model, const Rest& all) {
    const Rest apart = apart_from_moe(model, all);
    const auto mean = [&](const auto& of) {
        return (of(all.attention) * (all.attention.count - apart.attention.count) +
                of(all.windowed) * (all.windowed.count - apart.windowed.count)) /
               model.moe_layers();
    };
    return {mean([](const RestBlock& one) { return one.forward.total(); }),
            mean([](const RestBlock& one) { return one.backward.total(); }),
            mean([](const RestBlock& one) { return one.weight_gradients; }),
            mean([](const RestBlock& one) { return one.forward.host + one.backward.host; })};
}

void add_attention(OverlappedSteps& steps, const AttentionTime& all, const AttentionTime& left) {
    steps.forward.attention = {all.forward, left.forward};
    steps.backward.attention = {all.backward, left.backward};
    steps.backward.attention_weights =
        split_off(steps.backward.attention, {all.weights, left.weights});
}

}  // namespace

SystemSpec without_overlap(SystemSpec system) {
    system.overlap_passes = false;
    return system;
}

Rest apart_from_moe(const Model& model, Rest rest) {
    rest.attention.count = std::min(rest.attention.count, model.dense_layers);
    rest.windowed.count = model.dense_layers - rest.attention.count;
    return rest;
}

OverlappedTime overlapped_time(const LayerInput& input, const SystemSpec& system,
                               const Sequences& sequences, const ModelOptions& options) {
    const Model& model = input.model;
    const Gpu& gpu = input.machine.gpu;
    const Cards cards{gpu, with_sms(gpu, gpu.sms - system.communication_sms)};
    OverlappedSteps steps = simulate_both(input, without_overlap(system), cards, options.layer);
    const AttentionTime attention =
        attention_of(model, rest_of(model, cards.all, sequences, options));
    add_attention(steps, attention,
                  attention_of(model, rest_of(model, cards.left, sequences, options)));
    const OverlappedPair pair = overlap(steps);
    OverlappedTime time;
    time.period = pair.period;
    time.busy = pair.busy - attention.host;
    time.host = attention.host;
    time.compute = steps.compute() - attention.host;
    time.communication = steps.communication();
    return time;
}

namespace {

constexpr Ps kNever = std::numeric_limits<Ps>::max();

bool before(const LaneStep& a, const LaneStep& b, LaneRule rule) {
    if (a.weights != b.weights) return b.weights;
    if (rule == LaneRule::forward_first && a.backward != b.backward) return b.backward;
    if (rule == LaneRule::backward_first && a.backward != b.backward) return a.backward;
    return a.ready < b.ready;
}

class Schedule {
  public:
    Schedule(std::vector<LaneStep> steps, LaneRule rule) : steps_(std::move(steps)), rule_(rule) {
        for (std::size_t i = 0; i < steps_.size(); ++i)
            if (steps_[i].missing == 0) wait(i);
    }

    std::vector<LaneStep> run() {
        while (done_ < steps_.size()) {
            start(kernels_);
            start(rows_);
            if (!kernels_.running && !rows_.running)
                throw std::logic_error("steps wait for one another");
            advance();
        }
        return std::move(steps_);
    }

  private:
    struct Track {
        std::vector<std::size_t> waiting;
        std::optional<std::size_t> running;
        double left = 0;  ///< share of the running step that is left, from 1 down
    };

    void wait(std::size_t step) {
        (steps_[step].lane == Lane::compute ? kernels_ : rows_).waiting.push_back(step);
    }

    void start(Track& track) {
        if (track.running || track.waiting.empty()) return;
        const auto first = std::min_element(
            track.waiting.begin(), track.waiting.end(),
            [&](std::size_t a, std::size_t b) { return before(steps_[a], steps_[b], rule_); });
        track.running = *first;
        track.left = 1;
        steps_[*first].begin = now_;
        track.waiting.erase(first);
    }

    double length(const Track& track) const {
        const KernelTime& time = steps_[*track.running].length;
        return static_cast<double>(rows_.running ? time.beside : time.alone);
    }

    Ps needs(const Track& track) const {
        return track.running ? std::llround(track.left * length(track)) : kNever;
    }

    /// Moves time on to the end of the step that ends next.
    void advance() {
        const Ps kernels = needs(kernels_);
        const Ps rows = needs(rows_);
        const Ps passed = std::min(kernels, rows);
        now_ += passed;
        if (kernels_.running && kernels > passed)
            kernels_.left -= static_cast<double>(passed) / length(kernels_);
        if (rows_.running && rows > passed)
            rows_.left -= static_cast<double>(passed) / length(rows_);
        if (kernels == passed) finish(kernels_);
        if (rows == passed) finish(rows_);
    }

    void finish(Track& track) {
        const LaneStep& step = steps_[*track.running];
        steps_[*track.running].end = now_;
        track.running.reset();
        ++done_;
        for (const std::size_t next : step.next) {
            if (--steps_[next].missing > 0) continue;
            steps_[next].ready = now_;
            wait(next);
        }
    }

    std::vector<LaneStep> steps_;
    LaneRule rule_;
    Track kernels_;
    Track rows_;
    std::size_t done_ = 0;
    Ps now_ = 0;
};

}  // namespace

std::vector<LaneStep> run_lanes(std::vector<LaneStep> steps, LaneRule rule) {
    return Schedule(std::move(steps), rule).run();
}

}  // namespace moehub
