// Mixtral on 8 GPUs: over tokens, and over how unevenly tokens choose experts.
#include "study/figure_table.hpp"
#include "study/reproduce_moe_hub.hpp"

#include <fmt/format.h>

namespace moehub {
namespace {

CellKey usual(std::int64_t tokens, const std::string& routing, std::string_view system) {
    return {kUsualModel, kUsualGpus, tokens, routing, std::string(system)};
}

std::string routing_of(double spread) {
    return spread > 0 ? fmt::format("normal:{}", spread) : "uniform";
}

/// A row for each of these counts; returns the leads.
Values add_counts(const std::vector<std::int64_t>& counts, const Lookup& cell, FigureTable& table) {
    Values leads;
    for (const std::int64_t tokens : counts) {
        const Ps hub = cell(usual(tokens, "uniform", kMoeHub)).time;
        const Ps megatron = cell(usual(tokens, "uniform", kMoeHubBaselines.front())).time;
        leads.push_back(faster(megatron, hub));
        table.rows.push_back(
            {{fmt::format("{}", tokens)}, {to_us(hub), to_us(megatron), leads.back()}, false});
    }
    return leads;
}

}  // namespace

FigureResult tokens_figure(const MoeHubScope& scope, const Lookup& cell) {
    FigureTable table{"tokens",
                      "One MoE layer of Mixtral, 8 GPUs",
                      {"tokens"},
                      {{"moe-hub µs", NumberKind::time},
                       {"megatron-te µs", NumberKind::time},
                       {"over megatron-te", NumberKind::ratio}},
                      {},
                      {}};
    const Values few = add_counts(scope.few_tokens, cell, table);
    const Values many = add_counts(scope.many_tokens, cell, table);
    Values all = few;
    all.insert(all.end(), many.begin(), many.end());
    FigureResult result;
    result.numbers = {published(table, "over megatron-te, 128 to 2048 tokens", 4.70, few),
                      published(table, "over megatron-te, 4096 to 32768 tokens", 2.14, many),
                      published(table, "over megatron-te, all counts", 3.56, all)};
    add_means(table);
    result.tables.push_back(std::move(table));
    return result;
}

FigureResult imbalance_figure(const MoeHubScope& scope, const Lookup& cell) {
    FigureTable table{"imbalance",
                      "One MoE layer of Mixtral, 8 GPUs, 8192 tokens, by the standard deviation "
                      "of the experts' shares",
                      {"std of shares"},
                      {{"moe-hub µs", NumberKind::time}},
                      {},
                      {}};
    for (const std::string_view baseline : kMoeHubBaselines)
        table.columns.push_back({fmt::format("over {}", baseline), NumberKind::ratio});
    table.columns.push_back({"of ideal", NumberKind::share});
    for (const double spread : scope.spreads) {
        const std::string routing = routing_of(spread);
        const Ps hub = cell(usual(kUsualTokens, routing, kMoeHub)).time;
        FigureTable::Row row{{fmt::format("{}", spread)}, {to_us(hub)}, false};
        for (const std::string_view baseline : kMoeHubBaselines)
            row.values.push_back(faster(cell(usual(kUsualTokens, routing, baseline)).time, hub));
        row.values.push_back(faster(cell(usual(kUsualTokens, routing, kIdeal)).time, hub));
        table.rows.push_back(std::move(row));
    }
    FigureResult result;
    result.claims.push_back(always_ahead(table, "the lead stays however uneven experts are"));
    result.tables.push_back(std::move(table));
    return result;
}

}  // namespace moehub
