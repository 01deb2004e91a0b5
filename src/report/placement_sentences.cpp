#include "report/placement_report.hpp"
#include "report/table.hpp"

#include <algorithm>

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
const PlacementRow& reference(const PlacementTable& table) {
    return table.known.moved ? *(table.rows.end() - 2) : table.rows.front();
}

std::string gain_sentence(const PlacementReport& report) {
    const PlacementTable table = mean_table(report.judged());
    const PlacementRow& before = reference(table);
    const Evaluation& old = before.evaluation;
    const Evaluation& now = table.found();
    std::vector<std::string> parts;
    if (table.known.tokens)
        parts.push_back(fmt::format("a token goes to {:.2f} GPUs a layer instead of {:.2f}{}",
                                    now.gpus_per_token, old.gpus_per_token,
                                    beside(now.gpus_per_token, old.gpus_per_token)));
    if (table.known.tokens && report.nodes > 1)
        parts.push_back(fmt::format("to {:.2f} nodes instead of {:.2f}{}", now.nodes_per_token,
                                    old.nodes_per_token,
                                    beside(now.nodes_per_token, old.nodes_per_token)));
    if (table.known.transitions)
        parts.push_back(fmt::format("{} of the transitions change GPU instead of {}",
                                    percent(now.off_gpu_transitions),
                                    percent(old.off_gpu_transitions)));
    parts.push_back(fmt::format("the busiest GPU has {:.3f} times the mean load instead of {:.3f}",
                                now.load_max_over_mean, old.load_max_over_mean));
    return fmt::format("{}, against {}: {}.",
                       report.held_out.empty() ? "On the profile" : "On held-out tokens",
                       before.layout, fmt::join(parts, ", "));
}

std::string bound_sentence(const PlacementReport& report) {
    const PlaceResult& result = report.result;
    const std::string value =
        fmt::format("The objective is {} on the profile", significant(result.value));
    if (!(result.bound > 0)) return value + "; no lower bound is known.";
    if (result.gap <= 1e-9)
        return value + ", and no layout within the caps is below that: the optimum.";
    return fmt::format(
        "{}; no layout within the caps is below {}, so it is at most {} above the best.", value,
        significant(result.bound), percent(result.gap));
}

std::string load_sentence(double training, double held_out) {
    return fmt::format(
        "The load does not carry over as well as the rest: {:.3f} on the profile, {:.3f} on "
        "held-out tokens. --load-blocks 4, --replicas or several profiles help.",
        training, held_out);
}

std::string same_tokens_sentence(const PlacementReport& report) {
    const std::string& name = report.training.front().profile;
    const bool whole = name.find_first_of(":@ ") == name.npos;  // not cut or weighed already
    return fmt::format(
        "These figures are on the profile itself; on other tokens they are less good. To hold "
        "tokens back: --profile {0}:0-0.5 --evaluate {0}:0.5-1",
        whole ? name : "FILE");
}

/// "-12.0 %"; nothing stays nothing.
std::string change(Ps before, Ps after) {
    return before > 0 ? percent(-saved(before, after), true) : "0 %";
}

std::string effect_sentence(const LayoutEffect& before, const LayoutEffect& now) {
    return fmt::format(
        "Simulated under {}: {} {} mean and {} tail, experts {} mean and {} tail, {} {:.3f} times "
        "as fast as {}.",
        now.system, now.fused ? "all-to-all that no kernel hides" : "all-to-all",
        change(before.all_to_all.mean, now.all_to_all.mean),
        change(before.all_to_all.p95, now.all_to_all.p95),
        change(before.processing.mean, now.processing.mean),
        change(before.processing.p95, now.processing.p95),
        now.model > 0 ? "the model" : "the MoE layers", now.speedup, before.layout);
}

/// The last layout of each system against the first.
void add_effects(const PlacementEffect& effect, std::vector<std::string>& out) {
    const auto& rows = effect.layouts;
    std::size_t first = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (rows[i].system != rows[first].system) first = i;
        const bool last = i + 1 == rows.size() || rows[i + 1].system != rows[i].system;
        if (last && i > first) out.push_back(effect_sentence(rows[first], rows[i]));
    }
    out.insert(out.end(), effect.notes.begin(), effect.notes.end());
}

std::string file_sentence(const PlacementFile& file) {
    if (file.path.empty())
        return fmt::format("Nothing is written yet: -o FILE writes the layout, --format {} ({}).",
                           to_string(file.format), fmt::join(layout_formats(), ", "));
    return fmt::format("Wrote {}, format {}.", file.path, to_string(file.format));
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
        if (held_out > training + kLoadDrift) out.push_back(load_sentence(training, held_out));
    }
    out.push_back(bound_sentence(report));
    if (report.effect) add_effects(*report.effect, out);
    if (report.training.front().known.tokens) out.push_back(traffic_model());
    for (const std::string& note : report.result.notes) out.push_back(note);
    if (report.result.cut_short)
        out.emplace_back(
            "The search was cut short by the clock: the next run may find another layout.");
    out.push_back(file_sentence(report.file));
    out.push_back(fmt::format("Placed in {}.", duration(report.result.seconds)));
    return out;
}

}  // namespace moehub
