#include "study/reproduce_moe_hub.hpp"

#include "study/reproduce_paper.hpp"

namespace moehub {
namespace {

std::vector<PaperFigure> figures_of(const MoeHubScope& scope) {
    const auto of = [&scope](FigureResult (*make)(const MoeHubScope&, const Lookup&)) {
        return [scope, make](const Lookup& cell) { return make(scope, cell); };
    };
    return {
        {"layer", "one MoE layer: 3 models, 4 and 8 GPUs, 4096 and 8192 tokens", of(layer_figure)},
        {"end-to-end", "the whole model, the same cells", of(end_to_end_figure)},
        {"tokens", "Mixtral on 8 GPUs, 128 to 32768 tokens", of(tokens_figure)},
        {"imbalance", "Mixtral on 8 GPUs, experts more and less in demand", of(imbalance_figure),
         false},
        {"ablation", "RPM and DAM taken away, up to the end of GEMM-1", of(ablation_figure)},
        {"scaling", "2 to 16 GPUs, 8192 tokens", of(scaling_figure), false},
    };
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
    return names_of(figures_of(whole_moe_hub()));
}

/// The paper goes on to 16 GPUs: the same links and switches with more ports, still one node.
/// Experts have two matrices, as it describes them.
PaperSetup moe_hub_setup() {
    PaperSetup setup{"dgx-h800", {"max_gpus=16", "model.gated=false"}, moe_hub_readings()};
    setup.bound_scales = true;
    return setup;
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
    Reproduction all;
    all.paper = "moe-hub";
    all.title = "MoE-Hub";
    all.arxiv = "2605.05888";
    all.venue = "ISCA 2026";
    all.setup = setup();
    return reproduce_paper(std::move(all), moe_hub_setup(),
                           figures_of(options.quick ? quick_moe_hub() : whole_moe_hub()),
                           moe_hub_reason, options);
}

}  // namespace moehub
