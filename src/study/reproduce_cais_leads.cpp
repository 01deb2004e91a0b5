// Sub-layers and whole models against nine baselines:
//
//     lead of a cell = time of the baseline / time of CAIS,
//
// and published are the geometric mean and the largest of the leads, and CAIS over CAIS-Base.
#include "study/figure_table.hpp"
#include "study/reproduce_cais.hpp"

#include <algorithm>
#include <functional>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

struct Published {
    std::string_view baseline;
    double mean = 0;
    double largest = 0;  ///< 0: not published
};
using Leads = std::array<Published, 10>;
constexpr Leads kSubLayer = {{{"tp-nvls", 1.39, 1.53},
                              {"sp-nvls", 1.91, 2.05},
                              {"coconet", 1.99, 2.11},
                              {"fuselib", 1.91, 2.04},
                              {"t3", 1.64, 1.67},
                              {"coconet-nvls", 1.24, 1.36},
                              {"fuselib-nvls", 1.20, 1.31},
                              {"t3-nvls", 1.47, 1.51},
                              {"ladm", 7.90, 8.08},
                              {kCaisBase, 1.47, 0}}};
constexpr Leads kInference = {{{"tp-nvls", 1.38, 1.43},
                               {"sp-nvls", 1.89, 1.95},
                               {"coconet", 1.98, 1.99},
                               {"fuselib", 1.90, 1.92},
                               {"t3", 1.61, 1.65},
                               {"coconet-nvls", 1.25, 1.28},
                               {"fuselib-nvls", 1.21, 1.24},
                               {"t3-nvls", 1.45, 1.49},
                               {"ladm", 7.60, 7.80},
                               {kCaisBase, 1.43, 0}}};
constexpr Leads kTraining = {{{"tp-nvls", 1.37, 1.44},
                              {"sp-nvls", 1.89, 1.96},
                              {"coconet", 1.96, 2.03},
                              {"fuselib", 1.89, 1.96},
                              {"t3", 1.60, 1.65},
                              {"coconet-nvls", 1.23, 1.30},
                              {"fuselib-nvls", 1.20, 1.25},
                              {"t3-nvls", 1.45, 1.49},
                              {"ladm", 7.59, 7.75},
                              {kCaisBase, 1.42, 0}}};
constexpr double kAlike = 0.021;  ///< of published leads: no order between such baselines

using CellUnder = std::function<const ReproducedCell&(std::string_view system)>;

FigureTable leads_table(std::string figure, std::string title, std::vector<std::string> labels,
                        const Leads& paper) {
    FigureTable table{std::move(figure), std::move(title), std::move(labels), {}, {}, {}};
    table.columns.push_back({"cais µs", NumberKind::time});
    for (const Published& one : paper)
        table.columns.push_back({fmt::format("over {}", one.baseline), NumberKind::ratio});
    return table;
}

void add_leads(std::vector<std::string> labels, const Leads& paper, Ps ReproducedCell::*time,
               const CellUnder& cell, FigureTable& table) {
    const auto note_refusal = [&](const ReproducedCell& one) {
        if (!one.refusal.empty())
            table.notes.push_back(fmt::format("{}: {}", fmt::join(labels, ", "), one.refusal));
    };
    const ReproducedCell& own = cell(kCais);
    note_refusal(own);
    FigureTable::Row row{
        labels, {own.*time > 0 ? std::optional(to_us(own.*time)) : std::nullopt}, false};
    for (const Published& one : paper) {
        const ReproducedCell& other = cell(one.baseline);
        note_refusal(other);
        row.values.push_back(faster(other.*time, own.*time));
    }
    table.rows.push_back(std::move(row));
}

/// Baselines from the one that CAIS leads least, and how many pairs that the paper tells apart
/// stand as there.
PublishedClaim same_order(const FigureTable& table, const Leads& paper) {
    std::vector<std::pair<double, std::size_t>> ours;
    for (std::size_t i = 0; i < paper.size(); ++i)
        if (paper[i].largest > 0)
            ours.emplace_back(geometric_mean_of(column_of(table, i + 1)).value_or(0), i);
    std::sort(ours.begin(), ours.end());
    int pairs = 0;
    int alike = 0;
    std::vector<std::string_view> order;
    for (std::size_t a = 0; a < ours.size(); ++a) {
        order.push_back(paper[ours[a].second].baseline);
        for (std::size_t b = a + 1; b < ours.size(); ++b) {
            const double apart = paper[ours[b].second].mean - paper[ours[a].second].mean;
            if (apart > -kAlike && apart < kAlike) continue;
            ++pairs;
            if (apart > 0) ++alike;
        }
    }
    return {table.figure, "the baselines' order", pairs > 0 && alike == pairs,
            fmt::format("{} of {} pairs; fastest first: {}", alike, pairs, fmt::join(order, ", ")),
            ""};
}

FigureResult result_of(FigureTable table, const Leads& paper) {
    FigureResult result;
    for (std::size_t i = 0; i < paper.size(); ++i)
        result.numbers.push_back(published(table, fmt::format("over {}", paper[i].baseline),
                                           paper[i].mean, column_of(table, i + 1),
                                           Over::geometric_mean));
    for (std::size_t i = 0; i < paper.size(); ++i)
        if (paper[i].largest > 0)
            result.numbers.push_back(
                published(table, fmt::format("over {}, largest", paper[i].baseline),
                          paper[i].largest, column_of(table, i + 1), Over::largest));
    result.claims.push_back(always_ahead(table, "ahead of every baseline in every cell"));
    result.claims.push_back(same_order(table, paper));
    add_geometric_and_largest(table);
    result.tables.push_back(std::move(table));
    return result;
}

/// Exposed communication of tp-nvls over the compute of ideal, which has the same GEMMs and a norm
/// that no GPU repeats; all sub-layers together.
PublishedNumber communication_over_compute(const CaisScope& scope, const Lookup& cell) {
    double communication = 0;
    double compute = 0;
    for (const std::string& part : scope.parts) {
        communication +=
            static_cast<double>(cell(cais_cell(scope.usual, part, kTpNvls)).communication);
        compute += static_cast<double>(cell(cais_cell(scope.usual, part, "ideal")).compute);
    }
    PublishedNumber number;
    number.figure = "sub-layer";
    number.what = "tp-nvls's exposed communication over ideal's compute, LLaMA-7B";
    number.paper = 1.6;
    number.ours = number.geometric = compute > 0 ? communication / compute : 0;
    return number;
}

FigureResult models_figure(FigureTable table, const Leads& paper, Ps ReproducedCell::*time,
                           const CaisScope& scope, const Lookup& cell) {
    for (const CaisModel& model : scope.models)
        add_leads(
            {model.name}, paper, time,
            [&](std::string_view system) -> const ReproducedCell& {
                CellKey key{model.model, kCaisGpus, model.tokens, "", std::string(system)};
                key.work = CellWork::training;  // the way forward among it
                return cell(key);
            },
            table);
    return result_of(std::move(table), paper);
}

}  // namespace

FigureResult cais_sub_layer_figure(const CaisScope& scope, const Lookup& cell) {
    FigureTable table = leads_table("sub-layer", "One sub-layer: time of the baseline / cais's",
                                    {"model", "sub-layer"}, kSubLayer);
    for (const CaisModel& model : scope.models)
        for (const std::string& part : scope.parts)
            add_leads(
                {model.name, part}, kSubLayer, &ReproducedCell::time,
                [&](std::string_view system) -> const ReproducedCell& {
                    return cell(cais_cell(model, part, system));
                },
                table);
    FigureResult result = result_of(std::move(table), kSubLayer);
    result.numbers.push_back(communication_over_compute(scope, cell));
    return result;
}

FigureResult cais_inference_figure(const CaisScope& scope, const Lookup& cell) {
    return models_figure(
        leads_table("inference", "The whole model, forward: time of the baseline / cais's",
                    {"model"}, kInference),
        kInference, &ReproducedCell::forward_time, scope, cell);
}

FigureResult cais_training_figure(const CaisScope& scope, const Lookup& cell) {
    return models_figure(
        leads_table("training",
                    "The whole model, forward and backward: time of the baseline / cais's",
                    {"model"}, kTraining),
        kTraining, &ReproducedCell::model_time, scope, cell);
}

}  // namespace moehub
