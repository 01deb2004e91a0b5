// The MoE layer and the whole model over the paper's grid of models, GPUs and tokens:
//
//     lead of a cell = time of the baseline / time of MoE-Hub,
//
// and the published number is the mean of the leads. A whole model's time is that of everything
// outside its MoE layers, the same for all systems, and of its MoE layers.
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
#include "study/reproduce_paper.hpp"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

namespace moehub {
namespace {

/// Which cells the figures have: the paper's, or a few of them.
struct MoeHubScope {
    std::vector<std::string> models;
    std::vector<int> grid_gpus;             ///< GPUs of layer and end-to-end
    std::vector<std::int64_t> grid_tokens;  ///< tokens of layer and end-to-end
    std::vector<std::int64_t> few_tokens;   ///< fewer tokens of the sweep over tokens
    std::vector<std::int64_t> many_tokens;  ///< more tokens of the sweep over tokens
    std::vector<double> spreads;            ///< deviations of the experts' shares; 0: uniform
    std::vector<std::int64_t> ablation;     ///< tokens of the ablation
    std::vector<int> scaling;               ///< numbers of GPUs, ascending
    std::vector<std::string> scaling_models;
};

const Publication& moe_hub_paper() {
    return publication("moe-hub");
}

/// MoE-Hub and the systems that the paper compares with, in its order.
Leads five_baselines(Ps ReproducedCell::*time = &ReproducedCell::time) {
    return {"moe-hub", {"megatron-te", "fastermoe", "tutel", "comet", "ccfuser"}, time};
}

Leads baselines_and_ideal() {
    Leads leads = five_baselines();
    leads.others.push_back("ideal");
    return leads;
}

/// A row for each model, number of GPUs and number of tokens.
std::vector<LeadsRow> grid_rows(const MoeHubScope& scope) {
    std::vector<LeadsRow> rows;
    for (const std::string& model : scope.models)
        for (const int gpus : scope.grid_gpus)
            for (const std::int64_t tokens : scope.grid_tokens)
                rows.push_back({{model, std::to_string(gpus), std::to_string(tokens)},
                                {model, gpus, tokens, "uniform", ""}});
    return rows;
}

std::vector<LeadsRow> imbalance_rows(const MoeHubScope& scope) {
    std::vector<LeadsRow> rows;
    for (const double spread : scope.spreads) {
        const std::string routing = spread > 0 ? fmt::format("normal:{}", spread) : "uniform";
        rows.push_back({{fmt::format("{}", spread)}, {"mixtral-8x7b", 8, 8192, routing, ""}});
    }
    return rows;
}

std::vector<LeadsRow> scaling_rows(const MoeHubScope& scope) {
    std::vector<LeadsRow> rows;
    for (const std::string& model : scope.scaling_models)
        for (const int gpus : scope.scaling)
            rows.push_back({{model, std::to_string(gpus)}, {model, gpus, 8192, "uniform", ""}});
    return rows;
}

/// Adds a row for each count of tokens; returns the leads.
Values add_counts(const std::vector<std::int64_t>& counts, const Lookup& cell, FigureTable& table) {
    Values leads;
    for (const std::int64_t tokens : counts) {
        const auto time = [&](std::string_view system) {
            return cell({"mixtral-8x7b", 8, tokens, "uniform", std::string(system)}).time;
        };
        const Ps hub = time("moe-hub");
        const Ps megatron = time("megatron-te");
        leads.push_back(faster(megatron, hub));
        table.rows.push_back(
            {{std::to_string(tokens)}, {to_us(hub), to_us(megatron), leads.back()}});
    }
    return leads;
}

FigureResult tokens_figure(const MoeHubScope& scope, const Lookup& cell) {
    FigureTable table{"tokens",
                      "One MoE layer of Mixtral, 8 GPUs",
                      {"tokens"},
                      {{"moe-hub µs", NumberKind::time},
                       {"megatron-te µs", NumberKind::time},
                       {"over megatron-te", NumberKind::ratio}}};
    const Values few = add_counts(scope.few_tokens, cell, table);
    const Values many = add_counts(scope.many_tokens, cell, table);
    const auto number = [](const char* what, const Values& values) {
        return published_mean(moe_hub_paper(), "tokens", what, values);
    };
    FigureResult result{{number("over megatron-te, 128 to 2048 tokens", few),
                         number("over megatron-te, 4096 to 32768 tokens", many),
                         number("over megatron-te, all counts", column_of(table, 2))}};
    add_means(moe_hub_paper(), table);
    result.tables.push_back(std::move(table));
    return result;
}

enum class HubUnit { rpm, dam };

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
                return cell({model, 8, tokens, "uniform", std::string(system)}).first_gemm;
            };
            const Ps base = end("mh-base");
            const Ps pkt = end("mh-pkt");
            const Ps dep = end("mh-dep");
            const Ps hub = end("moe-hub");
            table.rows.push_back({{model, std::to_string(tokens)},
                                  {to_us(hub), faster(base, pkt), faster(dep, hub),
                                   faster(base, dep), faster(pkt, hub)}});
        }
    }
    return table;
}

/// Both ratios of a unit, of the rows whose label in `column` is `label`; empty: of all rows.
Values gains_of(const FigureTable& table, HubUnit unit, std::size_t column = 0,
                const std::string& label = {}) {
    const std::size_t first = unit == HubUnit::rpm ? 1 : 3;
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
                                  {mean_of(gains_of(cells, HubUnit::rpm, column, label)),
                                   mean_of(gains_of(cells, HubUnit::dam, column, label))}});
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
        claims.push_back(moe_hub_paper().claim("ablation", what, holds, std::move(found)));
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
                return cell({model, on, 8192, "uniform", system}).time;
            };
            FigureTable::Row row{{model, std::to_string(gpus)},
                                 {static_cast<double>(gpus) / fewest}};
            for (std::size_t i = 1; i < table.columns.size(); ++i)
                row.values.push_back(faster(time(table.columns[i].title, fewest),
                                            time(table.columns[i].title, gpus)));
            table.rows.push_back(std::move(row));
        }
    }
    return table;
}

constexpr std::size_t kHubColumn = 1;  ///< column of MoE-Hub in the table of throughputs

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
        if (row.labels[1] == std::to_string(scope.scaling.front()) || best == 0) continue;
        const double hub = row.values[kHubColumn].value_or(0);
        const double lead = hub / *row.values[best];
        ++rows;
        ahead += lead > 1 ? 1 : 0;
        if (rows > 1 && lead >= worst) continue;
        worst = lead;
        found = fmt::format("{} on {} GPUs {:.2f}×, {} {:.2f}×", row.labels[0], row.labels[1], hub,
                            table.columns[best].title, *row.values[best]);
    }
    return moe_hub_paper().claim(
        table.figure, "throughput grows closer to linear than any baseline's", ahead == rows,
        fmt::format("in {} of {} cells; at worst {}", ahead, rows, found));
}

FigureResult ablation_figure(const MoeHubScope& scope, const Lookup& cell) {
    FigureTable cells = ablation_table(scope, cell);
    const FigureTable by_model = means_by(cells, 0);
    const FigureTable by_tokens = means_by(cells, 1);
    FigureResult result{
        {published_mean(moe_hub_paper(), "ablation", "gain of RPM", gains_of(cells, HubUnit::rpm)),
         published_mean(moe_hub_paper(), "ablation", "gain of DAM", gains_of(cells, HubUnit::dam))},
        claims_of(by_model, by_tokens)};
    add_means(moe_hub_paper(), cells);
    result.tables.push_back(std::move(cells));
    for (const FigureTable& means : {by_model, by_tokens})
        if (means.rows.size() > 1) result.tables.push_back(means);
    return result;
}

FigureResult scaling_figure(const MoeHubScope& scope, const Lookup& cell) {
    FigureResult result =
        make_leads(moe_hub_paper(),
                   {.name = "scaling",
                    .title = "More GPUs, 8192 tokens: time of the baseline / moe-hub's",
                    .labels = {"model", "GPUs"},
                    .leads = five_baselines(),
                    .rows = scaling_rows(scope),
                    .claims = {{always_ahead, "ahead of every baseline on any number of GPUs"}}},
                   cell);
    result.tables.push_back(throughput_table(scope, five_baselines(), cell));
    result.claims.push_back(closest_to_linear(scope, result.tables.back()));
    return result;
}

MoeHubScope whole_moe_hub() {
    const std::vector<std::string> models{"mixtral-8x7b", "phi-3.5-moe", "qwen2-moe-2.7b-moehub"};
    return {.models = models,
            .grid_gpus = {4, 8},
            .grid_tokens = {4096, 8192},
            .few_tokens = {128, 256, 512, 1024, 2048},
            .many_tokens = {4096, 8192, 16384, 32768},
            .spreads = {0, 0.01, 0.02, 0.032, 0.04, 0.05},
            .ablation = {4096, 8192, 16384},
            .scaling = {2, 4, 8, 16},
            .scaling_models = models};
}

MoeHubScope quick_moe_hub() {
    return {.models = {"mixtral-8x7b", "qwen2-moe-2.7b-moehub"},
            .grid_gpus = {8},
            .grid_tokens = {4096},
            .few_tokens = {128, 1024},
            .many_tokens = {4096},
            .spreads = {0.032},
            .ablation = {4096},
            .scaling = {4, 8},
            .scaling_models = {"mixtral-8x7b"}};
}

}  // namespace

/// The paper goes on to 16 GPUs: the same links and switches with more ports, still one node.
/// Experts have two matrices, as it describes them.
PaperOfCells moe_hub_cells(bool quick) {
    const Publication& paper = moe_hub_paper();
    const MoeHubScope scope = quick ? quick_moe_hub() : whole_moe_hub();
    PaperSetup setup = setup_of(paper);
    setup.bound_scales = true;
    return {
        paper,
        setup,
        {figure_of(paper, {.name = "layer",
                           .title = "One MoE layer: time of the baseline / moe-hub's",
                           .labels = {"model", "GPUs", "tokens"},
                           .leads = baselines_and_ideal(),
                           .rows = grid_rows(scope),
                           .means = true}),
         figure_of(paper, {.name = "end-to-end",
                           .title = "The whole model, forward: time of the baseline / moe-hub's",
                           .labels = {"model", "GPUs", "tokens"},
                           .leads = five_baselines(&ReproducedCell::model_time),
                           .rows = grid_rows(scope),
                           .means = true}),
         figure_of("tokens", tokens_figure, scope),
         figure_of(paper,
                   {.name = "imbalance",
                    .title = "One MoE layer of Mixtral, 8 GPUs, 8192 tokens, by the standard "
                             "deviation of the experts' shares",
                    .labels = {"std of shares"},
                    .leads = baselines_and_ideal(),
                    .rows = imbalance_rows(scope),
                    .claims = {{always_ahead, "the lead stays however uneven experts are"}}},
                   false),
         figure_of("ablation", ablation_figure, scope),
         figure_of("scaling", scaling_figure, scope, false)}};
}

}  // namespace moehub
