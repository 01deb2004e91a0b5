// What RPM and DAM bring, from routing to the end of GEMM-1. With t the time of MH-Base (neither),
// MH-PKT (RPM), MH-DEP (DAM) and MoE-Hub (both):
//
//     RPM = mean(t[base] / t[pkt], t[dep] / t[hub])
//     DAM = mean(t[base] / t[dep], t[pkt] / t[hub]),
//
// each unit without the other and with it.
#include "study/figure_table.hpp"
#include "study/reproduce_moe_hub.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr const char* kQwen2 = "qwen2-moe-2.7b-moehub";

enum class Unit { rpm, dam };

FigureTable cells_table(const MoeHubScope& scope, const Lookup& cell) {
    FigureTable table{"ablation",
                      "Routing to the end of GEMM-1, 8 GPUs: gain of each unit",
                      {"model", "tokens"},
                      {{"moe-hub µs", NumberKind::time},
                       {"RPM without DAM", NumberKind::ratio},
                       {"RPM with DAM", NumberKind::ratio},
                       {"DAM without RPM", NumberKind::ratio},
                       {"DAM with RPM", NumberKind::ratio}},
                      {},
                      {}};
    for (const std::string& model : scope.models) {
        for (const std::int64_t tokens : scope.ablation) {
            const auto end = [&](std::string_view system) {
                return cell({model, kUsualGpus, tokens, "uniform", std::string(system)}).first_gemm;
            };
            const Ps base = end("mh-base");
            const Ps pkt = end("mh-pkt");
            const Ps dep = end("mh-dep");
            const Ps hub = end(kMoeHub);
            table.rows.push_back({{model, fmt::format("{}", tokens)},
                                  {to_us(hub), faster(base, pkt), faster(dep, hub),
                                   faster(base, dep), faster(pkt, hub)},
                                  false});
        }
    }
    return table;
}

/// Both ratios of a unit, of the rows whose label in `column` is this; all rows without a label.
Values gains_of(const FigureTable& table, Unit unit, std::size_t column, const std::string& label) {
    const std::size_t first = unit == Unit::rpm ? 1 : 3;
    Values gains;
    for (const FigureTable::Row& row : table.rows) {
        if (row.mean || (!label.empty() && row.labels[column] != label)) continue;
        gains.insert(gains.end(), {row.values[first], row.values[first + 1]});
    }
    return gains;
}

/// Means of the cells that share a label: by model, or by tokens.
FigureTable means_by(const FigureTable& cells, std::size_t column) {
    FigureTable table{"ablation",
                      fmt::format("Means by {}", cells.labels[column]),
                      {cells.labels[column]},
                      {{"RPM", NumberKind::ratio}, {"DAM", NumberKind::ratio}},
                      {},
                      {}};
    for (const FigureTable::Row& row : cells.rows) {
        const std::string& label = row.labels[column];
        const bool known = std::any_of(table.rows.begin(), table.rows.end(),
                                       [&](const auto& one) { return one.labels[0] == label; });
        if (known) continue;
        table.rows.push_back({{label},
                              {mean_of(gains_of(cells, Unit::rpm, column, label)),
                               mean_of(gains_of(cells, Unit::dam, column, label))},
                              false});
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
    const auto less = [](const auto& a, const auto& b) { return a.values[0] < b.values[0]; };
    if (by_model.rows.size() > 1) {
        const auto best = std::max_element(by_model.rows.begin(), by_model.rows.end(), less);
        claims.push_back({"ablation", "RPM gains most on Qwen2", best->labels[0] == kQwen2,
                          listed(by_model, 0), ""});
    }
    if (by_tokens.rows.size() > 1) {
        const auto& rows = by_tokens.rows;
        const bool grows = std::is_sorted(rows.begin(), rows.end(), less);
        const bool shrinks = std::all_of(rows.begin() + 1, rows.end(), [&](const auto& row) {
            return row.values[1] < rows.front().values[1];
        });
        claims.push_back(
            {"ablation", "RPM gains more the more tokens", grows, listed(by_tokens, 0), ""});
        claims.push_back(
            {"ablation", "DAM gains most at the fewest tokens", shrinks, listed(by_tokens, 1), ""});
    }
    return claims;
}

}  // namespace

FigureResult ablation_figure(const MoeHubScope& scope, const Lookup& cell) {
    FigureTable cells = cells_table(scope, cell);
    const FigureTable by_model = means_by(cells, 0);
    const FigureTable by_tokens = means_by(cells, 1);
    FigureResult result;
    result.numbers = {published(cells, "gain of RPM", 1.13, gains_of(cells, Unit::rpm, 0, "")),
                      published(cells, "gain of DAM", 1.14, gains_of(cells, Unit::dam, 0, ""))};
    result.claims = claims_of(by_model, by_tokens);
    add_means(cells);
    result.tables.push_back(std::move(cells));
    for (const FigureTable& means : {by_model, by_tokens})
        if (means.rows.size() > 1) result.tables.push_back(means);
    return result;
}

}  // namespace moehub
