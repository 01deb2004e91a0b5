// Counts: from recorded ones to a profile, from a profile's ids, and tokens drawn by them.
#include "base/input_error.hpp"
#include "base/rng.hpp"
#include "model/expert_draw.hpp"
#include "model/routing_shares.hpp"
#include "place/profile/profile_readers.hpp"

#include <algorithm>

namespace moehub {
namespace {

/// Adds what the tokens from … to − 1 chose in a layer.
void add_choices(const Profile& profile, int layer, const Cut& run, std::span<double> counts) {
    // Four tables in turn: equal experts in a row would wait for each other's addition.
    const auto experts = static_cast<std::size_t>(profile.experts);
    std::vector<std::uint64_t> tables(4 * experts, 0);
    const std::size_t from = static_cast<std::size_t>(layer * profile.tokens + run.from) *
                             static_cast<std::size_t>(profile.top_k);
    const std::size_t size =
        static_cast<std::size_t>(run.to - run.from) * static_cast<std::size_t>(profile.top_k);
    const std::span chosen(profile.chosen.data() + from, size);
    for (std::size_t at = 0; at < chosen.size(); ++at)
        if (chosen[at] != Profile::kNobody) ++tables[(at & 3) * experts + chosen[at]];
    for (std::size_t expert = 0; expert < experts; ++expert)
        counts[expert] +=
            static_cast<double>(tables[expert] + tables[experts + expert] +
                                tables[2 * experts + expert] + tables[3 * experts + expert]);
}

std::size_t size_of(const Profile& profile) {
    return at(profile.layers) * at(profile.experts);
}

std::vector<double> count_tokens(const Profile& profile, const Cut& run) {
    std::vector<double> counts(size_of(profile), 0);
    const auto experts = at(profile.experts);
    for (int layer = 0; layer < profile.layers; ++layer)
        add_choices(profile, layer, run, std::span(counts).subspan(at(layer) * experts, experts));
    return counts;
}

std::vector<double> add_steps(const Profile& profile, const Cut& run) {
    const std::size_t size = size_of(profile);
    std::vector<double> counts(size, 0);
    for (auto step = static_cast<std::size_t>(run.from); step < static_cast<std::size_t>(run.to);
         ++step)
        for (std::size_t at = 0; at < size; ++at)
            counts[at] += profile.step_counts[step * size + at];
    return counts;
}

bool any_above_zero(std::span<const double> row) {
    return std::any_of(row.begin(), row.end(), [](double count) { return count > 0; });
}

struct Kept {
    std::vector<int> layers;
    std::vector<std::size_t> steps;
};

Kept counted_parts(const RecordedCounts& recording) {
    const auto layers = at(recording.layers);
    const auto experts = at(recording.experts);
    const auto steps = at(std::max(recording.steps, 1));
    std::vector<char> layer_counted(layers, 0);
    Kept kept;
    for (std::size_t step = 0; step < steps; ++step) {
        bool step_counted = false;
        for (std::size_t layer = 0; layer < layers; ++layer) {
            const std::span row(recording.counts.data() + (step * layers + layer) * experts,
                                experts);
            if (!any_above_zero(row)) continue;
            step_counted = true;
            layer_counted[layer] = 1;
        }
        if (step_counted) kept.steps.push_back(step);
    }
    for (std::size_t layer = 0; layer < layers; ++layer)
        if (layer_counted[layer] != 0) kept.layers.push_back(static_cast<int>(layer));
    return kept;
}

void copy_counts(const RecordedCounts& from, const Kept& kept, const Cut& cut,
                 std::vector<double>& to) {
    const auto layers = at(from.layers);
    const auto experts = at(from.experts);
    for (auto step = at(cut.from); step < at(cut.to); ++step)
        for (const int layer : kept.layers) {
            const auto* row =
                from.counts.data() + (kept.steps[step] * layers + at(layer)) * experts;
            to.insert(to.end(), row, row + experts);
        }
}

}  // namespace

Profile profile_of(RecordedCounts recording, const ProfileSource& source,
                   const ProfileOptions& options) {
    if (options.experts > 0 && options.experts != recording.experts)
        fail_in(source.path, "found counts of {} experts, allowed: {}, as asked for",
                recording.experts, options.experts);
    const Kept kept = counted_parts(recording);
    if (kept.layers.empty()) fail_in(source.path, "found no count above 0");
    if (recording.steps == 0 && (source.from > 0 || source.to < 1))
        fail_in(source.path,
                "found counts that were not recorded by step, of which no part can be taken");
    const Cut cut = cut_of(source, static_cast<std::int64_t>(kept.steps.size()), "steps");
    Profile profile;
    profile.name = source.text;
    profile.weight = source.weight;
    profile.layers = static_cast<int>(kept.layers.size());
    profile.experts = recording.experts;
    number_layers(profile, {kept.layers, recording.layers, recording.which}, source, options);
    if (recording.steps == 0) {
        copy_counts(recording, kept, cut, profile.counts);
        return profile;
    }
    profile.steps = static_cast<int>(cut.to - cut.from);
    profile.step_counts.reserve(at(profile.steps) * size_of(profile));
    copy_counts(recording, kept, cut, profile.step_counts);
    profile.counts = add_steps(profile, {0, profile.steps});
    return profile;
}

void count_choices(Profile& profile) {
    profile.counts = count_tokens(profile, {0, profile.tokens});
}

std::vector<std::vector<double>> block_counts(const Profile& profile, int blocks) {
    const std::int64_t parts = profile.has_tokens() ? profile.tokens : profile.steps;
    if (parts == 0) return {profile.counts};
    const std::int64_t runs = std::clamp<std::int64_t>(blocks, 1, parts);
    std::vector<std::vector<double>> all;
    for (std::int64_t run = 0; run < runs; ++run) {
        const Cut cut{parts * run / runs, parts * (run + 1) / runs};
        all.push_back(profile.has_tokens() ? count_tokens(profile, cut) : add_steps(profile, cut));
    }
    return all;
}

// Counts say how often an expert was chosen and not which were chosen together. Tokens are drawn so
// that every expert is expected as often as it was counted; choices of a token, and of its layers,
// are otherwise independent: what experts have in common is lost, their load is not.
Profile with_drawn_tokens(const Profile& profile, const Model& model, const DrawOptions& options) {
    if (profile.experts != model.experts)
        throw input_error("{}: found {} experts, allowed: {}, as the model has", profile.name,
                          profile.experts, model.experts);
    Profile drawn = profile;
    drawn.top_k = model.top_k;
    drawn.tokens = options.tokens;
    drawn.steps = 0;
    drawn.step_counts.clear();
    drawn.chosen.resize(at(drawn.layers * drawn.tokens * drawn.top_k));
    GroupLimit limit;
    if (model.top_groups < model.expert_groups) limit = {model.expert_groups, model.top_groups};
    auto* next = drawn.chosen.data();
    for (int layer = 0; layer < drawn.layers; ++layer) {
        const auto counts = profile.counts_of(layer);
        ExpertDraw draw(capped({counts.begin(), counts.end()}, 1.0 / drawn.top_k), drawn.top_k,
                        limit);
        Rng rng(options.seed, static_cast<std::uint64_t>(layer));
        for (std::int64_t token = 0; token < drawn.tokens; ++token) {
            draw.next_token();
            draw.allow_groups(rng);
            for (int choice = 0; choice < drawn.top_k; ++choice) *next++ = draw.draw(rng);
        }
    }
    count_choices(drawn);
    return drawn;
}

}  // namespace moehub
