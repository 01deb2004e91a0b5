// More GPUs on the same tokens. Throughput relative to the fewest GPUs is their time over the
// time of more; linear is the ratio of the GPUs.
#include "study/figure_table.hpp"
#include "study/reproduce_moe_hub.hpp"

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr std::size_t kHubColumn = 1;  ///< of the table of throughputs

CellKey key(const std::string& model, int gpus, std::string_view system) {
    return {model, gpus, kUsualTokens, "uniform", std::string(system)};
}

std::vector<std::string_view> all_systems_of_figure() {
    std::vector<std::string_view> systems{kMoeHub};
    systems.insert(systems.end(), kMoeHubBaselines.begin(), kMoeHubBaselines.end());
    return systems;
}

FigureTable leads_table(const MoeHubScope& scope, const Lookup& cell) {
    FigureTable table{"scaling",
                      "More GPUs, 8192 tokens: time of the baseline / moe-hub's",
                      {"model", "GPUs"},
                      {{"moe-hub µs", NumberKind::time}},
                      {},
                      {}};
    for (const std::string_view baseline : kMoeHubBaselines)
        table.columns.push_back({fmt::format("over {}", baseline), NumberKind::ratio});
    for (const std::string& model : scope.scaling_models) {
        for (const int gpus : scope.scaling) {
            const Ps hub = cell(key(model, gpus, kMoeHub)).time;
            FigureTable::Row row{{model, fmt::format("{}", gpus)}, {to_us(hub)}, false};
            for (const std::string_view baseline : kMoeHubBaselines) {
                const ReproducedCell& other = cell(key(model, gpus, baseline));
                row.values.push_back(faster(other.time, hub));
                if (!other.refusal.empty())
                    table.notes.push_back(
                        fmt::format("{} on {} GPUs: {}", model, gpus, other.refusal));
            }
            table.rows.push_back(std::move(row));
        }
    }
    return table;
}

FigureTable throughput_table(const MoeHubScope& scope, const Lookup& cell) {
    const int fewest = scope.scaling.front();
    FigureTable table{"scaling",
                      fmt::format("Throughput relative to {} GPUs", fewest),
                      {"model", "GPUs"},
                      {{"linear", NumberKind::ratio}},
                      {},
                      {}};
    for (const std::string_view system : all_systems_of_figure())
        table.columns.push_back({std::string(system), NumberKind::ratio});
    for (const std::string& model : scope.scaling_models) {
        for (const int gpus : scope.scaling) {
            FigureTable::Row row{
                {model, fmt::format("{}", gpus)}, {static_cast<double>(gpus) / fewest}, false};
            for (const std::string_view system : all_systems_of_figure())
                row.values.push_back(faster(cell(key(model, fewest, system)).time,
                                            cell(key(model, gpus, system)).time));
            table.rows.push_back(std::move(row));
        }
    }
    return table;
}

/// The column of the baseline whose throughput has grown most; 0 where none ran.
std::size_t best_baseline(const FigureTable::Row& row) {
    std::size_t best = 0;
    for (std::size_t i = kHubColumn + 1; i < row.values.size(); ++i)
        if (row.values[i] && (best == 0 || *row.values[i] > *row.values[best])) best = i;
    return best;
}

/// In every model and on every number of GPUs MoE-Hub's throughput has grown most.
PublishedClaim closest_to_linear(const MoeHubScope& scope, const FigureTable& table) {
    PublishedClaim claim{table.figure, "throughput grows closer to linear than any baseline's",
                         true, "", ""};
    int ahead = 0;
    int rows = 0;
    double worst = 0;
    for (const FigureTable::Row& row : table.rows) {
        const std::size_t best = best_baseline(row);
        if (row.labels[1] == fmt::format("{}", scope.scaling.front()) || best == 0) continue;
        const double hub = row.values[kHubColumn].value_or(0);
        const double lead = hub / *row.values[best];
        ++rows;
        ahead += lead > 1 ? 1 : 0;
        if (rows > 1 && lead >= worst) continue;
        worst = lead;
        claim.found = fmt::format("{} on {} GPUs {:.2f}×, {} {:.2f}×", row.labels[0], row.labels[1],
                                  hub, table.columns[best].title, *row.values[best]);
    }
    claim.holds = ahead == rows;
    claim.found = fmt::format("in {} of {} cells; at worst {}", ahead, rows, claim.found);
    return claim;
}

}  // namespace

FigureResult scaling_figure(const MoeHubScope& scope, const Lookup& cell) {
    FigureResult result;
    result.tables = {leads_table(scope, cell), throughput_table(scope, cell)};
    result.claims = {
        always_ahead(result.tables[0], "ahead of every baseline on any number of GPUs"),
        closest_to_linear(scope, result.tables[1])};
    return result;
}

}  // namespace moehub
