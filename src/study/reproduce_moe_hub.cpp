#include "study/reproduce_moe_hub.hpp"

namespace moehub {
namespace {

struct Figure {
    const char* name;
    const char* title;
    FigureResult (*make)(const MoeHubScope&, const Lookup&);
    bool numbers = true;  ///< it publishes some
};
constexpr Figure kFigures[] = {
    {"layer", "one MoE layer: 3 models, 4 and 8 GPUs, 4096 and 8192 tokens", layer_figure},
    {"end-to-end", "the whole model, the same cells", end_to_end_figure},
    {"tokens", "Mixtral on 8 GPUs, 128 to 32768 tokens", tokens_figure},
    {"imbalance", "Mixtral on 8 GPUs, experts more and less in demand", imbalance_figure, false},
    {"ablation", "RPM and DAM taken away, up to the end of GEMM-1", ablation_figure},
    {"scaling", "2 to 16 GPUs, 8192 tokens", scaling_figure, false},
};

std::vector<Figure> figures_wanted(const std::optional<std::string>& name) {
    check_figure(name, moe_hub_figures());
    std::vector<Figure> wanted;
    for (const Figure& figure : kFigures)
        if (!name || *name == figure.name) wanted.push_back(figure);
    return wanted;
}

/// Readings after the first are asked only for figures that publish numbers: others hold or not
/// by a claim.
bool is_read(const Figure& figure, std::size_t reading) {
    return reading == 0 || figure.numbers;
}

std::vector<CellKey> keys_of(const std::vector<Figure>& figures, const MoeHubScope& scope,
                             const std::vector<Reading>& readings) {
    std::vector<CellKey> keys;
    for (std::size_t reading = 0; reading < readings.size(); ++reading) {
        const std::vector<CellKey> asked = cells_asked([&](const Lookup& cell) {
            for (const Figure& figure : figures)
                if (is_read(figure, reading)) figure.make(scope, cell);
        });
        for (CellKey key : asked) {
            key.reading = readings[reading].name;
            keys.push_back(std::move(key));
        }
    }
    return keys;
}

/// The figure by the first reading, with what the others make of its numbers and claims beside.
FigureResult read_all(const Figure& figure, const MoeHubScope& scope, const Reproduction& all) {
    FigureResult first = figure.make(scope, lookup_in(all.cells, all.readings.front().name));
    for (std::size_t reading = 1; reading < all.readings.size(); ++reading) {
        if (!is_read(figure, reading)) continue;
        const FigureResult other =
            figure.make(scope, lookup_in(all.cells, all.readings[reading].name));
        for (std::size_t i = 0; i < first.numbers.size(); ++i)
            first.numbers[i].otherwise.push_back(other.numbers[i].ours);
        for (std::size_t i = 0; i < first.claims.size(); ++i)
            first.claims[i].otherwise.push_back(other.claims[i].holds);
    }
    return first;
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

const std::vector<Reading>& moe_hub_readings() {
    static const std::vector<Reading> readings = {
        {"both directions",
         "A GPU's 400 GB/s are both directions of its links together, as the H800's datasheet "
         "counts; GEMMs take what they take on a measured card.",
         {}},
        {"one direction",
         "A GPU's 400 GB/s are one direction's, and GEMMs run at half the tensor cores' rate, as "
         "in simulators that count cycles.",
         {"link.bandwidth=400 GB/s", "gpu.bf16_flops=494.7 TFLOP/s"}}};
    return readings;
}

Reproduction reproduce_moe_hub(const ReproduceOptions& options) {
    const std::vector<Figure> figures = figures_wanted(options.figure);
    const MoeHubScope scope = options.quick ? quick_moe_hub() : whole_moe_hub();
    Reproduction all;
    all.paper = "moe-hub";
    all.title = "MoE-Hub";
    all.arxiv = "2605.05888";
    all.venue = "ISCA 2026";
    all.setup = setup();
    all.figure = options.figure.value_or("");
    all.quick = options.quick;
    all.readings = moe_hub_readings();
    all.cells =
        simulate_cells(keys_of(figures, scope, all.readings), {options.threads, options.progress});
    for (const Figure& figure : figures)
        add_explained(read_all(figure, scope, all), moe_hub_reason, all);
    return all;
}

}  // namespace moehub
