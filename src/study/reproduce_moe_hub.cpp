#include "study/reproduce_moe_hub.hpp"

namespace moehub {
namespace {

struct Figure {
    const char* name;
    const char* title;
    FigureResult (*make)(const MoeHubScope&, const Lookup&);
};
constexpr Figure kFigures[] = {
    {"layer", "one MoE layer: 3 models, 4 and 8 GPUs, 4096 and 8192 tokens", layer_figure},
    {"end-to-end", "the whole model, the same cells", end_to_end_figure},
    {"tokens", "Mixtral on 8 GPUs, 128 to 32768 tokens", tokens_figure},
    {"imbalance", "Mixtral on 8 GPUs, experts more and less in demand", imbalance_figure},
    {"ablation", "RPM and DAM taken away, up to the end of GEMM-1", ablation_figure},
    {"scaling", "2 to 16 GPUs, 8192 tokens", scaling_figure},
};

std::vector<Figure> figures_wanted(const std::optional<std::string>& name) {
    check_figure(name, moe_hub_figures());
    std::vector<Figure> wanted;
    for (const Figure& figure : kFigures)
        if (!name || *name == figure.name) wanted.push_back(figure);
    return wanted;
}

std::vector<std::string> setup() {
    return {
        "Machine dgx-h800, row grain, uniform routing of seed 1 unless a figure says "
        "otherwise.",
        "Models as the paper describes them: mixtral-8x7b, phi-3.5-moe and "
        "qwen2-moe-2.7b-moehub (top-4 of 64 experts, none shared), experts of two matrices "
        "(gated=false).",
        "Tokens are those of all GPUs together.",
        "16 GPUs are one node with the links of dgx-h800 (max_gpus=16). Where there are more "
        "GPUs than experts, several share each expert (tensor parallel).",
        "Whole models: forward, everything outside the MoE layers timed by the GPU's model "
        "under an eager host and the same for all systems."};
}

}  // namespace

std::vector<NamedFigure> moe_hub_figures() {
    std::vector<NamedFigure> list;
    for (const Figure& figure : kFigures) list.push_back({figure.name, figure.title});
    return list;
}

MoeHubScope whole_moe_hub() {
    MoeHubScope scope;
    scope.models = {kUsualModel, "phi-3.5-moe", "qwen2-moe-2.7b-moehub"};
    scope.grid_gpus = {4, 8};
    scope.grid_tokens = {4096, 8192};
    scope.few_tokens = {128, 256, 512, 1024, 2048};
    scope.many_tokens = {4096, 8192, 16384, 32768};
    scope.spreads = {0, 0.01, 0.02, 0.032, 0.04, 0.05};
    scope.ablation = {4096, 8192, 16384};
    scope.scaling = {2, 4, 8, 16};
    scope.scaling_models = scope.models;
    return scope;
}

MoeHubScope quick_moe_hub() {
    MoeHubScope scope;
    scope.models = {kUsualModel, "qwen2-moe-2.7b-moehub"};
    scope.grid_gpus = {8};
    scope.grid_tokens = {4096};
    scope.few_tokens = {128, 1024};
    scope.many_tokens = {4096};
    scope.spreads = {0.032};
    scope.ablation = {4096};
    scope.scaling = {4, 8};
    scope.scaling_models = {kUsualModel};
    return scope;
}

Reproduction reproduce_moe_hub(const ReproduceOptions& options) {
    const std::vector<Figure> figures = figures_wanted(options.figure);
    const MoeHubScope scope = options.quick ? quick_moe_hub() : whole_moe_hub();
    const std::vector<CellKey> keys = cells_asked([&](const Lookup& asked) {
        for (const Figure& figure : figures) figure.make(scope, asked);
    });
    Reproduction all;
    all.paper = "moe-hub";
    all.title = "MoE-Hub";
    all.arxiv = "2605.05888";
    all.venue = "ISCA 2026";
    all.setup = setup();
    all.figure = options.figure.value_or("");
    all.quick = options.quick;
    all.cells = simulate_cells(keys, {options.threads, options.progress});
    const Lookup simulated = lookup_in(all.cells);
    for (const Figure& figure : figures)
        add_explained(figure.make(scope, simulated), moe_hub_reason, all);
    return all;
}

}  // namespace moehub
