// The MoE layer and the whole model over the paper's grid of models, GPUs and tokens:
//
//     lead of a cell = time of the baseline / time of MoE-Hub,
//
// and the published number is the mean of the leads. A whole model's time is that of everything
// outside its MoE layers, the same for all systems, and of its MoE layers.
#include "study/figure_table.hpp"
#include "study/reproduce_moe_hub.hpp"

#include <fmt/format.h>

namespace moehub {
namespace {

struct Point {
    std::string model;
    int gpus = 0;
    std::int64_t tokens = 0;

    CellKey under(std::string_view system) const {
        return {model, gpus, tokens, "uniform", std::string(system)};
    }
    std::vector<std::string> labels() const {
        return {model, fmt::format("{}", gpus), fmt::format("{}", tokens)};
    }
};

std::vector<Point> grid_of(const MoeHubScope& scope) {
    std::vector<Point> grid;
    for (const std::string& model : scope.models)
        for (const int gpus : scope.grid_gpus)
            for (const std::int64_t tokens : scope.grid_tokens)
                grid.push_back({model, gpus, tokens});
    return grid;
}

FigureTable grid_table(std::string figure, std::string title) {
    FigureTable table{std::move(figure), std::move(title), {"model", "GPUs", "tokens"}, {}, {}, {}};
    table.columns.push_back({"moe-hub µs", NumberKind::time});
    for (const std::string_view baseline : kMoeHubBaselines)
        table.columns.push_back({fmt::format("over {}", baseline), NumberKind::ratio});
    return table;
}

/// Of every baseline's column, beside the paper's.
void publish_leads(const std::array<double, kMoeHubBaselines.size()>& paper, FigureResult& result) {
    const FigureTable& table = result.tables.front();
    for (std::size_t i = 0; i < paper.size(); ++i)
        result.numbers.push_back(
            published(table, table.columns[i + 1].title, paper[i], column_of(table, i + 1)));
}

}  // namespace

FigureResult layer_figure(const MoeHubScope& scope, const Lookup& cell) {
    FigureTable table = grid_table("layer", "One MoE layer: time of the baseline / moe-hub's");
    table.columns.push_back({"of ideal", NumberKind::share});
    for (const Point& point : grid_of(scope)) {
        const Ps hub = cell(point.under(kMoeHub)).time;
        FigureTable::Row row{point.labels(), {to_us(hub)}, false};
        for (const std::string_view baseline : kMoeHubBaselines)
            row.values.push_back(faster(cell(point.under(baseline)).time, hub));
        row.values.push_back(faster(cell(point.under(kIdeal)).time, hub));
        table.rows.push_back(std::move(row));
    }
    FigureResult result;
    const Values shares = column_of(table, table.columns.size() - 1);
    add_means(table);
    result.tables.push_back(std::move(table));
    publish_leads({2.195, 3.082, 2.014, 1.400, 1.542}, result);
    result.numbers.push_back(published(result.tables.front(), "share of ideal", 0.968, shares));
    result.numbers.back().kind = NumberKind::share;
    return result;
}

FigureResult end_to_end_figure(const MoeHubScope& scope, const Lookup& cell) {
    FigureTable table =
        grid_table("end-to-end", "The whole model, forward: time of the baseline / moe-hub's");
    for (const Point& point : grid_of(scope)) {
        const Ps hub = cell(point.under(kMoeHub)).model_time;
        FigureTable::Row row{point.labels(), {to_us(hub)}, false};
        for (const std::string_view baseline : kMoeHubBaselines)
            row.values.push_back(faster(cell(point.under(baseline)).model_time, hub));
        table.rows.push_back(std::move(row));
    }
    FigureResult result;
    add_means(table);
    result.tables.push_back(std::move(table));
    publish_leads({1.625, 1.984, 1.506, 1.209, 1.278}, result);
    return result;
}

}  // namespace moehub
