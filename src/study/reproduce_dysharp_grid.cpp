// One MoE layer and whole models in training over the paper's configurations:
//
//     lead of a cell = time of the baseline / time of DySHARP,
//
// and published are the geometric mean and the largest of the leads. A 16-way pipeline multiplies
// the time of all that run one forward, one backward by the same (micro-batches + 15) /
// micro-batches, which the leads do not have.
#include "study/reproduce_dysharp_leads.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace moehub {
namespace {

struct Published {
    std::string_view baseline;
    double mean = 0;
    double largest = 0;
};
constexpr std::array<Published, 6> kLayer = {{{"deepep", 2.26, 2.77},
                                              {"nvls", 4.25, 6.93},
                                              {"fastermoe", 2.14, 2.48},
                                              {"tutel", 1.96, 2.32},
                                              {"ccfuser", 1.84, 2.01},
                                              {"comet", 1.78, 1.94}}};
constexpr std::array<Published, 7> kTraining = {{{"deepep", 1.93, 2.31},
                                                 {"nvls", 3.38, 5.12},
                                                 {"fastermoe", 1.84, 2.11},
                                                 {"tutel", 1.72, 1.98},
                                                 {"ccfuser", 1.63, 1.85},
                                                 {"comet", 1.59, 1.79},
                                                 {"dualpipe", 1.66, 1.88}}};

std::vector<std::string_view> baselines_of(std::span<const Published> published) {
    std::vector<std::string_view> names;
    for (const Published& one : published) names.push_back(one.baseline);
    return names;
}

FigureResult grid_figure(FigureTable table, std::span<const Published> paper, CellWork work,
                         const DysharpScope& scope, const Lookup& cell) {
    const auto time =
        work == CellWork::training ? &ReproducedCell::model_time : &ReproducedCell::time;
    for (const DysharpConfig& config : scope.configs)
        add_leads(
            {config.name}, baselines_of(paper), time,
            [&](std::string_view system) -> const ReproducedCell& {
                return cell(usual_point(config).under(system, work));
            },
            table);
    FigureResult result;
    for (std::size_t i = 0; i < paper.size(); ++i)
        result.numbers.push_back(published(table, fmt::format("over {}", paper[i].baseline),
                                           paper[i].mean, column_of(table, i + 1),
                                           Over::geometric_mean));
    for (std::size_t i = 0; i < paper.size(); ++i)
        result.numbers.push_back(
            published(table, fmt::format("over {}, largest", paper[i].baseline), paper[i].largest,
                      column_of(table, i + 1), Over::largest));
    result.claims.push_back(always_ahead(table, "ahead of every baseline in every configuration"));
    add_geometric_and_largest(table);
    result.tables.push_back(std::move(table));
    return result;
}

}  // namespace

FigureResult dysharp_layer_figure(const DysharpScope& scope, const Lookup& cell) {
    return grid_figure(leads_table("layer", "One MoE layer: time of the baseline / dysharp's",
                                   {"configuration"}, baselines_of(kLayer)),
                       kLayer, CellWork::layer, scope, cell);
}

FigureResult dysharp_training_figure(const DysharpScope& scope, const Lookup& cell) {
    return grid_figure(
        leads_table("training",
                    "The whole model, forward and backward: time of the baseline / dysharp's",
                    {"configuration"}, baselines_of(kTraining)),
        kTraining, CellWork::training, scope, cell);
}

}  // namespace moehub
