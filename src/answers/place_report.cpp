// What the layouts of a placement are worth on every profile.
#include "answers/placed.hpp"
#include "base/parallel.hpp"
#include "place/counts.hpp"
#include "place/methods.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace moehub {
namespace {

/// A table of all layouts for each profile, several evaluated at a time.
std::vector<PlacementTable> tables_of(const PlaceTask& task, const std::vector<Profile>& profiles,
                                      const std::vector<NamedLayout>& layouts) {
    std::vector<PlacementTable> tables;
    for (const Profile& profile : profiles) {
        PlacementTable& table = tables.emplace_back(PlacementTable{&profile, {}, {}});
        for (const NamedLayout& one : layouts) table.layouts.push_back(one.name);
        table.rows.resize(layouts.size());
    }
    const PlaceOptions& options = task.options;
    const EvaluateOptions how{task.input.nodes, options.batch,
                              options.current ? &*options.current : nullptr};
    run_parallel(
        profiles.size() * layouts.size(),
        [&](std::size_t piece) {
            const std::size_t profile = piece / layouts.size(), layout = piece % layouts.size();
            tables[profile].rows[layout] = evaluate(profiles[profile], layouts[layout].layout, how);
        },
        {options.threads, {}});
    return tables;
}

/// GPUs without an expert compute nothing, which a reader should know; nothing where all have one.
std::string idle_words(const NamedLayout& one) {
    std::vector<std::ptrdiff_t> idle;  // idle GPUs in each layer that has any
    for (const auto& gpus : one.layout.on)
        if (const auto count =
                std::count_if(gpus.begin(), gpus.end(), [](const auto& on) { return on.empty(); });
            count > 0)
            idle.push_back(count);
    if (idle.empty()) return "";
    const auto [least, most] = std::minmax_element(idle.begin(), idle.end());
    const std::size_t layers = one.layout.on.size();
    return fmt::format(
        "{}: {}{} of {} GPUs hold no expert{}.", one.name, *least < *most ? "up to " : "", *most,
        one.layout.gpus,
        idle.size() < layers ? fmt::format(" in {} of {} layers", idle.size(), layers) : "");
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

PlacementReport placement_report(const PlaceTask& task, const Placed& placed) {
    const PlaceInput& input = task.input;
    std::vector<NamedLayout> layouts{
        {"contiguous", contiguous_layout(shape_of(input.profiles.front()), input.gpus)},
        {"eplb", solve_eplb(input, task.options).layout}};
    if (task.options.current) layouts.push_back({"current", *task.options.current});
    layouts.push_back({task.options.method, placed.result.layout});
    PlacementReport report{task,
                           placed,
                           tables_of(task, input.profiles, layouts),
                           tables_of(task, task.held_out, layouts),
                           {}};
    for (const NamedLayout& one : layouts)
        if (std::string words = idle_words(one); !words.empty())
            report.idle.push_back(std::move(words));
    return report;
}

std::vector<std::vector<double>> pair_traffic(const std::vector<Profile>& profiles,
                                              const ExpertLayout& layout) {
    constexpr int kMostMapped = 128;
    if (layout.gpus > kMostMapped) return {};
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
        weights.push_back(table.profile->weight);
        if (!table.has_tokens()) mean.profile = table.profile;
    }
    for (std::size_t row = 0; row < mean.rows.size(); ++row) {
        std::vector<Evaluation> evaluations;
        for (const PlacementTable& table : tables) evaluations.push_back(table.rows[row]);
        mean.rows[row] = mean_evaluation(evaluations, weights);
    }
    return mean;
}

}  // namespace moehub
