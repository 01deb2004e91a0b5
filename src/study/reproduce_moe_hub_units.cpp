// MoE-Hub taken apart, and on more GPUs.
//
// What RPM and DAM bring, from routing to the end of GEMM-1: with t the time of MH-Base (neither),
// MH-PKT (RPM), MH-DEP (DAM) and MoE-Hub (both),
//
//     RPM = mean(t[base] / t[pkt], t[dep] / t[hub])
//     DAM = mean(t[base] / t[dep], t[pkt] / t[hub]),
//
// each unit without the other and with it.
//
// More GPUs on the same tokens: throughput relative to the fewest GPUs is their time over the time
// of more; linear is the ratio of the GPUs.
#include "study/reproduce_moe_hub.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace moehub {
namespace {

const Publication& paper() {
    return publication("moe-hub");
}

enum class Unit { rpm, dam };

FigureTable ablation_table(const MoeHubScope& scope, const Lookup& cell) {
    FigureTable table{"ablation",
                      "Routing to the end of GEMM-1, 8 GPUs: gain of each unit",
                      {"model", "tokens"},
                      {{"moe-hub µs", NumberKind::time},
                       {"RPM without DAM"},
                       {"RPM with DAM"},
                       {"DAM without RPM"},
                       {"DAM with RPM"}}};
    for (const std::string& model : scope.models) {
        for (const std::int64_t tokens : scope.ablation) {
            const auto end = [&](std::string_view system) {
                CellKey key = moe_hub_cell(system);
                key.model = model;
                key.tokens = tokens;
                return cell(key).first_gemm;
            };
            const Ps base = end("mh-base");
            const Ps pkt = end("mh-pkt");
            const Ps dep = end("mh-dep");
            const Ps hub = end("moe-hub");
            table.rows.push_back({{model, fmt::format("{}", tokens)},
                                  {to_us(hub), faster(base, pkt), faster(dep, hub),
                                   faster(base, dep), faster(pkt, hub)}});
        }
    }
    return table;
}

/// Both ratios of a unit, of the rows whose label in `column` is this; all rows without a label.
Values gains_of(const FigureTable& table, Unit unit, std::size_t column = 0,
                const std::string& label = {}) {
    const std::size_t first = unit == Unit::rpm ? 1 : 3;
    Values gains;
    for (const FigureTable::Row& row : table.rows)
        if (label.empty() || row.labels[column] == label)
            gains.insert(gains.end(), {row.values[first], row.values[first + 1]});
    return gains;
}

/// Means of the cells that share a label: by model, or by tokens.
FigureTable means_by(const FigureTable& cells, std::size_t column) {
    FigureTable table{"ablation",
                      fmt::format("Means by {}", cells.labels[column]),
                      {cells.labels[column]},
                      {{"RPM"}, {"DAM"}}};
    for (const FigureTable::Row& row : cells.rows) {
        const std::string& label = row.labels[column];
        const bool known = std::any_of(table.rows.begin(), table.rows.end(),
                                       [&](const auto& one) { return one.labels[0] == label; });
        if (!known)
            table.rows.push_back({{label},
                                  {mean_of(gains_of(cells, Unit::rpm, column, label)),
                                   mean_of(gains_of(cells, Unit::dam, column, label))}});
    }
    return table;
}

std::string listed(const FigureTable& means, std::size_t column) {
    std::string text;
    for (const FigureTable::Row& row : means.rows)
        text += fmt::format("{}{} {:.2f}×", text.empty() ? "" : ", ", row.labels[0],
                            row.values[column].value_or(0));
    return text;
}

/// What the paper says of the gains beyond their means; each needs more than one row.
std::vector<PublishedClaim> claims_of(const FigureTable& by_model, const FigureTable& by_tokens) {
    std::vector<PublishedClaim> claims;
    const auto claim = [&](const char* what, bool holds, std::string found) {
        claims.push_back(paper().claim("ablation", what, holds, std::move(found)));
    };
    const auto less = [](const auto& a, const auto& b) { return a.values[0] < b.values[0]; };
    if (by_model.rows.size() > 1) {
        const auto best = std::max_element(by_model.rows.begin(), by_model.rows.end(), less);
        claim("RPM gains most on Qwen2", best->labels[0] == "qwen2-moe-2.7b-moehub",
              listed(by_model, 0));
    }
    if (by_tokens.rows.size() > 1) {
        const auto& rows = by_tokens.rows;
        claim("RPM gains more the more tokens", std::is_sorted(rows.begin(), rows.end(), less),
              listed(by_tokens, 0));
        claim("DAM gains most at the fewest tokens",
              std::all_of(rows.begin() + 1, rows.end(),
                          [&](const auto& row) { return row.values[1] < rows.front().values[1]; }),
              listed(by_tokens, 1));
    }
    return claims;
}

/// The table of leads, as throughput relative to the fewest GPUs: GPU counts follow one another for
/// each model.
FigureTable throughput_table(const MoeHubScope& scope, const Leads& leads, const Lookup& cell) {
    const int fewest = scope.scaling.front();
    FigureTable table{"scaling",
                      fmt::format("Throughput relative to {} GPUs", fewest),
                      {"model", "GPUs"},
                      {{"linear"}, {std::string(leads.own)}}};
    for (const std::string_view system : leads.others)
        table.columns.push_back({std::string(system)});
    for (const std::string& model : scope.scaling_models) {
        for (const int gpus : scope.scaling) {
            const auto time = [&](const std::string& system, int on) {
                CellKey key = moe_hub_cell(system);
                key.model = model;
                key.gpus = on;
                return cell(key).time;
            };
            FigureTable::Row row{{model, fmt::format("{}", gpus)},
                                 {static_cast<double>(gpus) / fewest}};
            for (std::size_t i = 1; i < table.columns.size(); ++i)
                row.values.push_back(faster(time(table.columns[i].title, fewest),
                                            time(table.columns[i].title, gpus)));
            table.rows.push_back(std::move(row));
        }
    }
    return table;
}

constexpr std::size_t kHubColumn = 1;  ///< of the table of throughputs

/// The column of the baseline whose throughput has grown most; 0 where none ran.
std::size_t best_baseline(const FigureTable::Row& row) {
    std::size_t best = 0;
    for (std::size_t i = kHubColumn + 1; i < row.values.size(); ++i)
        if (row.values[i] && (best == 0 || *row.values[i] > *row.values[best])) best = i;
    return best;
}

/// In every model and on every number of GPUs MoE-Hub's throughput has grown most.
PublishedClaim closest_to_linear(const MoeHubScope& scope, const FigureTable& table) {
    int ahead = 0;
    int rows = 0;
    double worst = 0;
    std::string found;
    for (const FigureTable::Row& row : table.rows) {
        const std::size_t best = best_baseline(row);
        if (row.labels[1] == fmt::format("{}", scope.scaling.front()) || best == 0) continue;
        const double hub = row.values[kHubColumn].value_or(0);
        const double lead = hub / *row.values[best];
        ++rows;
        ahead += lead > 1 ? 1 : 0;
        if (rows > 1 && lead >= worst) continue;
        worst = lead;
        found = fmt::format("{} on {} GPUs {:.2f}×, {} {:.2f}×", row.labels[0], row.labels[1], hub,
                            table.columns[best].title, *row.values[best]);
    }
    return paper().claim(table.figure, "throughput grows closer to linear than any baseline's",
                         ahead == rows,
                         fmt::format("in {} of {} cells; at worst {}", ahead, rows, found));
}

}  // namespace

FigureResult moe_hub_ablation(const MoeHubScope& scope, const Lookup& cell) {
    FigureTable cells = ablation_table(scope, cell);
    const FigureTable by_model = means_by(cells, 0);
    const FigureTable by_tokens = means_by(cells, 1);
    FigureResult result{
        {published_mean(paper(), "ablation", "gain of RPM", gains_of(cells, Unit::rpm)),
         published_mean(paper(), "ablation", "gain of DAM", gains_of(cells, Unit::dam))},
        claims_of(by_model, by_tokens)};
    add_means(paper(), cells);
    result.tables.push_back(std::move(cells));
    for (const FigureTable& means : {by_model, by_tokens})
        if (means.rows.size() > 1) result.tables.push_back(means);
    return result;
}

FigureResult moe_hub_scaling(const MoeHubScope& scope, const Lookup& cell) {
    const Leads leads = moe_hub_leads();
    FigureTable table =
        leads_table(leads, "scaling", "More GPUs, 8192 tokens: time of the baseline / moe-hub's",
                    {"model", "GPUs"});
    for (const std::string& model : scope.scaling_models)
        for (const int gpus : scope.scaling)
            add_leads(
                leads, {model, fmt::format("{}", gpus)},
                [&](std::string_view system) {
                    CellKey key = moe_hub_cell(system);
                    key.model = model;
                    key.gpus = gpus;
                    return key;
                },
                cell, table);
    FigureTable throughput = throughput_table(scope, leads, cell);
    return {{},
            {always_ahead(paper(), table, "ahead of every baseline on any number of GPUs"),
             closest_to_linear(scope, throughput)},
            {std::move(table), std::move(throughput)}};
}

}  // namespace moehub
