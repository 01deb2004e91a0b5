#include "report/placement_report.hpp"

#include "base/parallel.hpp"
#include "place/counts.hpp"
#include "place/evaluate.hpp"
#include "place/methods.hpp"

#include <algorithm>

namespace moehub {
namespace {

KnownParts known_of(const Profile& profile, const PlacedCase& placed) {
    return {profile.has_tokens(), profile.has_tokens() && profile.layers > 1,
            placed.options.current.has_value()};
}

/// A table of baselines and the found layout for each profile, several evaluated at a time.
std::vector<PlacementTable> tables_of(const PlacedCase& placed,
                                      const std::vector<Profile>& profiles,
                                      const std::vector<NamedLayout>& layouts) {
    std::vector<PlacementTable> tables;
    for (const Profile& profile : profiles) {
        PlacementTable& table = tables.emplace_back();
        table.profile = profile.name;
        table.weight = profile.weight;
        table.tokens = profile.tokens;
        table.steps = profile.steps;
        table.known = known_of(profile, placed);
        for (const NamedLayout& one : layouts) table.rows.push_back({one.name, {}});
    }
    const PlaceOptions& options = placed.options;
    const EvaluateOptions how{placed.input.nodes, options.batch,
                              options.current ? &*options.current : nullptr};
    run_parallel(profiles.size() * layouts.size(),
                 [&](std::size_t piece) {
                     const std::size_t profile = piece / layouts.size(),
                                       layout = piece % layouts.size();
                     tables[profile].rows[layout].evaluation =
                         evaluate(profiles[profile], layouts[layout].layout, how);
                 },
                 {options.threads, {}});
    return tables;
}

void add_pairs(const Profile& profile, const ExpertLayout& layout, Matrix& pairs) {
    Matrix own(layout.gpus, layout.gpus);
    double total = 0;
    for (int layer = 1; layer < profile.layers; ++layer) {
        const LayerCopies before(layout, layer - 1), here(layout, layer);
        for (std::int64_t token = 0; token < profile.tokens; ++token)
            for (const std::uint16_t from : profile.chosen_by(layer - 1, token))
                for (const std::uint16_t to : profile.chosen_by(layer, token)) {
                    if (from == Profile::kNobody || to == Profile::kNobody) continue;
                    own(before.gpu(from, token), here.gpu(to, token)) += 1;
                    total += 1;
                }
    }
    if (!(total > 0)) return;
    for (std::size_t i = 0; i < own.at_.size(); ++i)
        pairs.at_[i] += profile.weight * own.at_[i] / total;
}

}  // namespace

std::vector<NamedLayout> baseline_layouts(const PlacedCase& placed) {
    const PlaceInput& input = placed.input;
    std::vector<NamedLayout> layouts{
        {"contiguous", contiguous_layout(shape_of(input.profiles.front()), input.gpus)},
        {"eplb", solve_eplb(input, placed.options).layout}};
    if (placed.options.current) layouts.push_back({"current", *placed.options.current});
    return layouts;
}

PlacementReport placement_report(const PlacedCase& placed) {
    const auto& [input, options, result, held_out] = placed;
    const Profile& first = input.profiles.front();
    PlacementReport report;
    report.method = options.method;
    report.layers = first.layers;
    report.experts = first.experts;
    for (const Profile& profile : input.profiles)
        report.top_k = std::max(report.top_k, profile.top_k);
    report.gpus = input.gpus;
    report.nodes = input.nodes;
    report.replicas = input.redundant;
    report.slots_per_gpu = slots_per_gpu(result.layout);
    report.slots = std::int64_t{first.layers} * (first.experts + input.redundant);
    report.load_cap = options.load_cap;
    report.load_blocks = options.load_blocks;
    report.worst_profile = options.worst_profile;
    report.seed = options.seed;
    report.result = result;
    std::vector<NamedLayout> layouts = baseline_layouts(placed);
    layouts.push_back({options.method, result.layout});
    report.training = tables_of(placed, input.profiles, layouts);
    report.held_out = tables_of(placed, held_out, layouts);
    return report;
}

std::vector<std::vector<double>> pair_traffic(const std::vector<Profile>& profiles,
                                              const ExpertLayout& layout) {
    constexpr int kMostGpus = 128;
    if (layout.gpus > kMostGpus) return {};
    Matrix pairs(layout.gpus, layout.gpus);
    double weights = 0;
    for (const Profile& profile : profiles) {
        if (!profile.has_tokens() || profile.layers < 2) continue;
        add_pairs(profile, layout, pairs);
        weights += profile.weight;
    }
    std::vector<std::vector<double>> rows;
    for (int from = 0; from < layout.gpus && weights > 0; ++from) {
        std::vector<double>& row = rows.emplace_back();
        for (int to = 0; to < layout.gpus; ++to) row.push_back(pairs(from, to) / weights);
    }
    return rows;
}

PlacementTable mean_table(const std::vector<PlacementTable>& tables) {
    PlacementTable mean = tables.front();
    std::vector<double> weights;
    for (const PlacementTable& table : tables) {
        weights.push_back(table.weight);
        mean.known.tokens = mean.known.tokens && table.known.tokens;
        mean.known.transitions = mean.known.transitions && table.known.transitions;
    }
    for (std::size_t row = 0; row < mean.rows.size(); ++row) {
        std::vector<Evaluation> evaluations;
        for (const PlacementTable& table : tables)
            evaluations.push_back(table.rows[row].evaluation);
        mean.rows[row].evaluation = mean_evaluation(evaluations, weights);
    }
    return mean;
}

}  // namespace moehub
