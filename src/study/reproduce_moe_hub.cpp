// The MoE layer and the whole model over the paper's grid of models, GPUs and tokens:
//
//     lead of a cell = time of the baseline / time of MoE-Hub,
//
// and the published number is the mean of the leads. A whole model's time is that of everything
// outside its MoE layers, the same for all systems, and of its MoE layers.
#include "study/reproduce_moe_hub.hpp"

#include <fmt/format.h>

namespace moehub {
namespace {

const Publication& paper() {
    return publication("moe-hub");
}

/// A table of leads over models, GPUs and tokens.
FigureTable grid_table(const MoeHubScope& scope, const Leads& leads, FigureTable table,
                       const Lookup& cell) {
    for (const std::string& model : scope.models)
        for (const int gpus : scope.grid_gpus)
            for (const std::int64_t tokens : scope.grid_tokens)
                add_leads(
                    leads, {model, fmt::format("{}", gpus), fmt::format("{}", tokens)},
                    [&](std::string_view system) {
                        return CellKey{model, gpus, tokens, "uniform", std::string(system)};
                    },
                    cell, table);
    return table;
}

FigureResult layer_figure(const MoeHubScope& scope, const Lookup& cell) {
    Leads leads = moe_hub_leads();
    leads.others.push_back("ideal");
    FigureTable table =
        grid_table(scope, leads,
                   leads_table(leads, "layer", "One MoE layer: time of the baseline / moe-hub's",
                               {"model", "GPUs", "tokens"}),
                   cell);
    FigureResult result{published_leads(paper(), table)};
    result.numbers.push_back(published_mean(paper(), "layer", "share of ideal",
                                            column_of(table, table.columns.size() - 1)));
    add_means(paper(), table);
    result.tables.push_back(std::move(table));
    return result;
}

FigureResult end_to_end_figure(const MoeHubScope& scope, const Lookup& cell) {
    const Leads leads = moe_hub_leads(&ReproducedCell::model_time);
    FigureTable table =
        grid_table(scope, leads,
                   leads_table(leads, "end-to-end",
                               "The whole model, forward: time of the baseline / moe-hub's",
                               {"model", "GPUs", "tokens"}),
                   cell);
    FigureResult result{published_leads(paper(), table)};
    add_means(paper(), table);
    result.tables.push_back(std::move(table));
    return result;
}

/// A row for each of these counts; returns the leads.
Values add_counts(const std::vector<std::int64_t>& counts, const Lookup& cell, FigureTable& table) {
    Values leads;
    for (const std::int64_t tokens : counts) {
        const auto time = [&](std::string_view system) {
            CellKey key = moe_hub_cell(system);
            key.tokens = tokens;
            return cell(key).time;
        };
        const Ps hub = time("moe-hub");
        const Ps megatron = time("megatron-te");
        leads.push_back(faster(megatron, hub));
        table.rows.push_back(
            {{fmt::format("{}", tokens)}, {to_us(hub), to_us(megatron), leads.back()}});
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
        return published_mean(paper(), "tokens", what, values);
    };
    FigureResult result{{number("over megatron-te, 128 to 2048 tokens", few),
                         number("over megatron-te, 4096 to 32768 tokens", many),
                         number("over megatron-te, all counts", column_of(table, 2))}};
    add_means(paper(), table);
    result.tables.push_back(std::move(table));
    return result;
}

FigureResult imbalance_figure(const MoeHubScope& scope, const Lookup& cell) {
    Leads leads = moe_hub_leads();
    leads.others.push_back("ideal");
    FigureTable table = leads_table(leads, "imbalance",
                                    "One MoE layer of Mixtral, 8 GPUs, 8192 tokens, by the "
                                    "standard deviation of the experts' shares",
                                    {"std of shares"});
    for (const double spread : scope.spreads)
        add_leads(
            leads, {fmt::format("{}", spread)},
            [&](std::string_view system) {
                CellKey key = moe_hub_cell(system);
                if (spread > 0) key.routing = fmt::format("normal:{}", spread);
                return key;
            },
            cell, table);
    FigureResult result;
    result.claims = {always_ahead(paper(), table, "the lead stays however uneven experts are")};
    result.tables.push_back(std::move(table));
    return result;
}

}  // namespace

CellKey moe_hub_cell(std::string_view system) {
    return {"mixtral-8x7b", 8, 8192, "uniform", std::string(system)};
}

Leads moe_hub_leads(Ps ReproducedCell::*time) {
    return {"moe-hub", {"megatron-te", "fastermoe", "tutel", "comet", "ccfuser"}, time};
}

/// The paper goes on to 16 GPUs: the same links and switches with more ports, still one node.
/// Experts have two matrices, as it describes them.
PaperSetup moe_hub_setup() {
    PaperSetup setup = setup_of(paper());
    setup.bound_scales = true;
    return setup;
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

std::vector<PaperFigure> moe_hub_figures(const MoeHubScope& scope) {
    return {figure_of("layer", layer_figure, scope),
            figure_of("end-to-end", end_to_end_figure, scope),
            figure_of("tokens", tokens_figure, scope),
            figure_of("imbalance", imbalance_figure, scope, false),
            figure_of("ablation", moe_hub_ablation, scope),
            figure_of("scaling", moe_hub_scaling, scope, false)};
}

Reproduction reproduce_moe_hub(const ReproduceOptions& options) {
    return reproduce_cells(begun(paper(), options), paper(), moe_hub_setup(),
                           moe_hub_figures(options.quick ? quick_moe_hub() : whole_moe_hub()),
                           options);
}

}  // namespace moehub
