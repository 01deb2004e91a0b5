#include "study/reproduce_moe_hub.hpp"

#include "base/nearest.hpp"
#include "base/quantity.hpp"

#include <moehub/error.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

constexpr double kTolerance = 0.1;

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
    std::vector<Figure> wanted;
    std::vector<std::string> known;
    for (const Figure& figure : kFigures) {
        known.emplace_back(figure.name);
        if (!name || *name == figure.name) wanted.push_back(figure);
    }
    if (wanted.empty())
        throw InputError(fmt::format("figure: found {}, allowed: {}{}", moehub::quoted(*name),
                                     fmt::join(known, ", "), did_you_mean(*name, known)));
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

void explain(FigureResult& result) {
    for (PublishedNumber& one : result.numbers)
        if (!one.as_published())
            one.reason = moe_hub_reason(one.figure, one.what,
                                        one.ours > one.paper ? Side::above : Side::below);
    for (PublishedClaim& one : result.claims)
        if (!one.holds) one.reason = moe_hub_reason(one.figure, one.what, Side::below);
}

template <class Item>
void append(std::vector<Item>& all, std::vector<Item>& some) {
    std::move(some.begin(), some.end(), std::back_inserter(all));
}

}  // namespace

bool PublishedNumber::as_published() const {
    return std::abs(ratio() - 1) <= kTolerance;
}

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
    all.setup = setup();
    all.figure = options.figure.value_or("");
    all.quick = options.quick;
    all.cells = simulate_cells(keys, {options.threads, options.progress});
    const Lookup simulated = lookup_in(all.cells);
    for (const Figure& figure : figures) {
        FigureResult result = figure.make(scope, simulated);
        explain(result);
        append(all.numbers, result.numbers);
        append(all.claims, result.claims);
        append(all.tables, result.tables);
    }
    return all;
}

}  // namespace moehub
