// What a placement means, a sentence each.
#include "answers/placed.hpp"
#include "base/quantity.hpp"
#include "report/number.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

/// Load on held-out tokens above that on the profile by this much is worth a word.
constexpr double kLoadDrift = 0.03;

std::string beside(double now, double before) {
    return before > 0 ? fmt::format(" ({})", percent(now / before - 1, true)) : "";
}

/// Against the current layout where there is one, else what servers start with.
std::size_t reference(const PlacementReport& report, const PlacementTable& table) {
    return report.task.options.current ? table.rows.size() - 2 : 0;
}

std::string gain_sentence(const PlacementReport& report) {
    const PlacementTable table = mean_table(report.judged());
    const std::size_t before = reference(report, table);
    const Evaluation& old = table.rows[before];
    const Evaluation& now = table.found();
    std::vector<std::string> parts;
    if (table.has_tokens())
        parts.push_back(fmt::format("a token goes to {:.2f} GPUs a layer instead of {:.2f}{}",
                                    now.gpus_per_token, old.gpus_per_token,
                                    beside(now.gpus_per_token, old.gpus_per_token)));
    if (table.has_tokens() && report.task.input.nodes > 1)
        parts.push_back(fmt::format("to {:.2f} nodes instead of {:.2f}{}", now.nodes_per_token,
                                    old.nodes_per_token,
                                    beside(now.nodes_per_token, old.nodes_per_token)));
    if (table.has_transitions())
        parts.push_back(fmt::format("{} of the transitions change GPU instead of {}",
                                    percent(now.off_gpu_transitions),
                                    percent(old.off_gpu_transitions)));
    parts.push_back(fmt::format("the busiest GPU has {:.3f} times the mean load instead of {:.3f}",
                                now.load_max_over_mean, old.load_max_over_mean));
    return fmt::format("{}, against {}: {}.",
                       report.held_out.empty() ? "On the profile" : "On held-out tokens",
                       table.layouts[before], fmt::join(parts, ", "));
}

/// The largest load over the mean in any layer of any profile.
double worst_load(const PlacementReport& report) {
    double worst = 0;
    for (const PlacementTable& table : report.training)
        worst = std::max(worst, table.found().load_worst_layer);
    return worst;
}

/// Whether the method has said itself that the load cap was not kept.
bool cap_is_noted(const PlacementReport& report) {
    const auto& notes = report.placed.result.notes;
    return std::any_of(notes.begin(), notes.end(), [](const std::string& note) {
        return note.find("load cap") != std::string::npos;
    });
}

/// Whether a layer is loaded above the cap by more than rounding.
bool cap_is_broken(const PlacementReport& report) {
    return report.task.options.load_cap > 0 &&
           worst_load(report) > report.task.options.load_cap + 1e-6;
}

/// A value and its bound with as many digits as tell them apart.
std::pair<std::string, std::string> told_apart(double value, double bound) {
    std::pair<std::string, std::string> texts{significant(value), significant(bound)};
    for (int decimals = 3; texts.first == texts.second && decimals <= 12; ++decimals)
        texts = {fmt::format("{:.{}f}", value, decimals), fmt::format("{:.{}f}", bound, decimals)};
    return texts;
}

std::string bound_sentence(const PlacementReport& report) {
    constexpr double kNoGap = 1e-9;
    constexpr double kLeastShown = 0.0005;
    const PlaceResult& result = report.placed.result;
    if (result.value == 0)
        return "The objective is 0 on the profile, and nothing is below that: the optimum.";
    const bool none = !(result.bound > 0), optimum = result.gap <= kNoGap;
    const auto [value, bound] = none || optimum
                                    ? std::pair{significant(result.value), std::string()}
                                    : told_apart(result.value, result.bound);
    const std::string begin = fmt::format("The objective is {} on the profile", value);
    if (none) return begin + "; no lower bound is known.";
    const bool broken = cap_is_broken(report) || cap_is_noted(report);
    const std::string_view others =
        broken ? "no layout that is loaded no more than this one" : "no layout within the caps";
    if (optimum) return fmt::format("{}, and {} is below that: the optimum.", begin, others);
    return fmt::format(
        "{}; {} is below {}, so it is {} above the best{}.", begin, others, bound,
        result.gap < kLeastShown ? "less than 0.1 %" : "at most " + percent(result.gap),
        broken ? " of those" : "");
}

/// Options that help and are not given yet.
std::string load_sentence(const PlacementReport& report, double training, double held_out) {
    const bool blocks = searches(report) && report.task.options.load_blocks == 1 &&
                        std::any_of(report.training.begin(), report.training.end(),
                                    [](const PlacementTable& table) { return table.parts() > 1; });
    return fmt::format(
        "The load does not carry over{}: {:.3f} on the profile, {:.3f} on held-out tokens. "
        "{}--replicas or several profiles help.",
        mean_table(report.held_out).has_tokens() ? " as well as the rest" : "", training, held_out,
        blocks ? "--load-blocks 4, " : "");
}

std::string same_tokens_sentence(const PlacementReport& report) {
    const std::string begin =
        "These figures are on the profile itself; on other tokens they are less good.";
    const auto cut = std::find_if(report.training.begin(), report.training.end(),
                                  [](const PlacementTable& table) { return table.parts() > 1; });
    if (cut == report.training.end()) return begin;
    const std::string& name = cut->profile->name;
    const bool whole = name.find_first_of(":@ ") == name.npos;  // not cut or weighed already
    return fmt::format("{0} To hold {1} back: --profile {2}:0-0.5 --evaluate {2}:0.5-1", begin,
                       cut->has_tokens() ? "tokens" : "steps", whole ? name : "FILE");
}

/// "-12.0 %"; nothing stays nothing.
std::string change(Ps before, Ps after) {
    return before > 0 ? percent(-saved(before, after), true) : "0 %";
}

std::string effect_sentence(const LayoutEffect& before, const LayoutEffect& now,
                            const LayoutEffect* eplb) {
    std::string out = fmt::format(
        "Simulated under {}: {} {} mean and {} tail, experts {} mean and {} tail; {} {:.3f} times "
        "as fast as {}",
        now.system, now.fused ? "all-to-all that no kernel hides" : "all-to-all",
        change(before.all_to_all.mean, now.all_to_all.mean),
        change(before.all_to_all.p95, now.all_to_all.p95),
        change(before.processing.mean, now.processing.mean),
        change(before.processing.p95, now.processing.p95),
        now.model > 0 ? "the model" : "the MoE layers", now.speedup, before.layout);
    if (eplb != nullptr && eplb->layout != now.layout)
        out += fmt::format(
            ", {:.3f} times as fast as eplb with the same slots (a MoE layer {} µs "
            "instead of {})",
            faster(now, *eplb), tenths(to_us(now.layer.mean)), tenths(to_us(eplb->layer.mean)));
    return out + ".";
}

/// The layout taken against experts in order and against EPLB's, system by system.
void add_effects(const PlacementReport& report, std::vector<std::string>& out) {
    const PlacementEffect& effect = *report.placed.effect;
    const LayoutEffect* first = nullptr;
    for (const LayoutEffect& one : effect.layouts) {
        if (first == nullptr || one.system != first->system) first = &one;
        if (&one != first && one.layout == report.placed.taken)
            out.push_back(effect_sentence(*first, one, effect_of(effect, kEplb, one.system)));
    }
    out.insert(out.end(), effect.notes.begin(), effect.notes.end());
}

}  // namespace

std::string traffic_model() {
    return "SGLang, vLLM and TensorRT-LLM return each layer's outputs to the token's home GPU: "
           "traffic follows GPUs per token; transitions matter where tokens stay (MoETuner's "
           "model).";
}

std::vector<std::string> placement_sentences(const PlacementReport& report) {
    std::vector<std::string> out;
    out.push_back(gain_sentence(report));
    if (report.held_out.empty()) {
        out.push_back(same_tokens_sentence(report));
    } else {
        const double training = mean_table(report.training).found().load_max_over_mean;
        const double held_out = mean_table(report.held_out).found().load_max_over_mean;
        if (held_out > training + kLoadDrift)
            out.push_back(load_sentence(report, training, held_out));
    }
    out.push_back(bound_sentence(report));
    if (cap_is_broken(report) && !cap_is_noted(report))
        out.push_back(
            fmt::format("The load cap {} is broken: {} in the worst layer.",
                        print_number(report.task.options.load_cap),
                        told_apart(worst_load(report), report.task.options.load_cap).first));
    if (report.placed.effect) add_effects(report, out);
    out.insert(out.end(), report.idle.begin(), report.idle.end());
    if (report.training.front().has_tokens()) out.push_back(traffic_model());
    for (const std::string& note : report.placed.result.notes) out.push_back(note);
    if (report.placed.result.cut_short)
        out.push_back(
            fmt::format("The search was {}: the next run may find another layout.",
                        report.placed.interrupted ? "interrupted" : "cut short by the clock"));
    return out;
}

}  // namespace moehub
