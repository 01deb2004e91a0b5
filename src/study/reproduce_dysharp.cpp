#include "study/reproduce_dysharp.hpp"

#include "study/reproduce_paper.hpp"

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr int kSwitchesOfMore = 18;  ///< the paper's, of 64 GPUs

DysharpConfig small(int top_k) {
    return {fmt::format("S top-{}", top_k), "dysharp-s", 64, top_k, 2048};
}
DysharpConfig medium(int top_k) {
    return {fmt::format("M top-{}", top_k), "dysharp-m", 128, top_k, 4096};
}
/// Of the larger top-k a quarter of the tokens, which changes ratios little and saves most of the
/// time that all of this takes.
DysharpConfig large(int top_k) {
    return {fmt::format("L top-{}", top_k), "dysharp-l", 256, top_k, top_k > 8 ? 2048 : 8192};
}

std::vector<PaperFigure> figures_of(const DysharpScope& scope) {
    const auto of = [&scope](FigureResult (*make)(const DysharpScope&, const Lookup&)) {
        return [scope, make](const Lookup& cell) { return make(scope, cell); };
    };
    return {
        {"layer", "one MoE layer of 11 configurations", of(dysharp_layer_figure)},
        {"training", "whole models, forward and backward, the same", of(dysharp_training_figure),
         false},
        {"traffic", "bytes on the links, the same", of(dysharp_traffic_figure)},
        {"wire", "communication in a layer, and how well it uses the links",
         of(dysharp_wire_figure)},
        {"ablation", "primitives and fusion apart, L top-8", of(dysharp_ablation_figure), false},
        {"gpus", "4 to 64 GPUs, S and M top-8", of(dysharp_gpus_figure), false},
        {"sequence", "1024 to 16384 tokens of a GPU, S top-8", of(dysharp_sequence_figure), false},
        {"deviation", "experts more and less in demand, S top-8", of(dysharp_deviation_figure),
         false},
        {"skew", "inference under a power law, S top-8", of(dysharp_skew_figure), false},
        {"tlb", "entries of the AL TLB, S top-8, every packet", of(dysharp_tlb_figure), false},
        {"buffer", "reduction buffer of a port, the same", of(dysharp_buffer_figure), false},
    };
}

std::vector<std::string> setup_sentences(const DysharpScope& scope) {
    return {
        "Machine gh200-nvl32, 32 GPUs and 9 switches, row grain unless a figure says otherwise.",
        "Every GPU has one sequence: S 2048 tokens, M 4096, L 8192, GPT-OSS and Qwen3 4096; of L "
        "top-16 and top-32 a quarter, 2048. Models "
        "dysharp-s, -m and -l with their top-k, gpt-oss-120b-dysharp, qwen3-235b-a22b.",
        "All systems run the same software: a graph, no kernel for the activation, rows in BF16 "
        "both ways. The paper simulates cycles of GPUs, and has no host that issues operators.",
        "Whole models: forward and backward of one micro-batch, everything outside the MoE layers "
        "timed by the GPU's model and the same for all. The paper's 16-way pipeline over 16 nodes "
        "makes the time of all that run one forward, one backward longer by the same factor, which "
        "a ratio does not show; that DualPipe's is smaller is left out.",
        "Experts' shares are drawn with the paper's standard deviation, 0.032, of an even share. "
        "Of all choices it would be twice to eight times that share, and leave many experts "
        "without "
        "tokens; Tutel, which pads every expert to the largest, could then not be near its "
        "published time. The figure deviation has the other meanings.",
        "64 GPUs have 18 switches. Fewer than 32 keep the 9.",
        fmt::format("Skewed inference: {} tokens of a GPU (512 over all 32: decoding) and {} (a "
                    "prompt each). Units' sizes: {} tokens of a GPU, every packet.",
                    scope.skew_sequences.front(), scope.skew_sequences.back(),
                    scope.unit_sequence)};
}

}  // namespace

std::vector<NamedFigure> dysharp_figures() {
    return names_of(figures_of(whole_dysharp()));
}

DysharpScope whole_dysharp() {
    DysharpScope scope;
    for (const auto of : {small, medium, large})
        for (const int top_k : {8, 16, 32}) scope.configs.push_back(of(top_k));
    scope.configs.push_back({"GPT-OSS", "gpt-oss-120b-dysharp", 64, 4, 4096});
    scope.configs.push_back({"Qwen3", "qwen3-235b-a22b", 128, 8, 4096});
    scope.large = large(8);
    scope.gpus_configs = {small(8), medium(8)};
    scope.gpus = {4, 8, 16, 32, 64};
    scope.usual = small(8);
    scope.sequences = {1024, 2048, 4096, 8192, 16384};
    scope.deviations = {0.01, 0.032, 0.05};
    scope.skews = {0.5, 1, 1.5, 2, 2.5};
    scope.skew_sequences = {16, 2048};
    scope.tlb_entries = {64, 128, 256, 512, 1024, 2048};
    scope.sum_packets = {64, 128, 256, 512, 1024, 2048};
    scope.unit_sequence = 256;
    return scope;
}

DysharpScope quick_dysharp() {
    DysharpConfig few = small(8);
    few.sequence = 256;
    DysharpScope scope;
    scope.configs = {few};
    scope.large = few;
    scope.gpus_configs = {few};
    scope.gpus = {4, 32};
    scope.usual = few;
    scope.sequences = {128, 256};
    scope.deviations = {0.032};
    scope.skews = {1.5};
    scope.skew_sequences = {16, 256};
    scope.tlb_entries = {64, 512};
    scope.sum_packets = {64, 512};
    scope.unit_sequence = 16;
    return scope;
}

/// One parameter set for every figure; 64 GPUs are still one node.
PaperSetup dysharp_setup() {
    return {
        "gh200-nvl32", {"max_gpus=64"}, dysharp_readings(), {HostMode::graph, true, false}, false};
}

CellKey DysharpPoint::under(std::string_view system, CellWork work) const {
    CellKey key{config.model, gpus, std::int64_t{config.sequence} * gpus, routing,
                std::string(system)};
    key.work = work;
    key.changes = {fmt::format("model.top_k={}", config.top_k)};
    if (gpus > kDysharpGpus) key.changes.push_back(fmt::format("switches={}", kSwitchesOfMore));
    return key;
}

DysharpPoint usual_point(const DysharpConfig& config) {
    return {config, kDysharpGpus, dysharp_routing(config, kDysharpDeviation)};
}

/// A routing's shares are of all choices.
std::string dysharp_routing(const DysharpConfig& config, double deviation, DeviationOf of) {
    switch (of) {
        case DeviationOf::even_share:
            deviation /= config.experts;
            break;
        case DeviationOf::tokens:
            deviation /= config.top_k;
            break;
        case DeviationOf::choices:
            break;
    }
    return fmt::format("normal:{:g}", deviation);
}

const std::vector<Reading>& dysharp_readings() {
    static const std::vector<Reading> readings = {
        {"FP8 GEMMs",
         "Tensor cores run at their FP8 rate, as the paper's kernels do, and SMs load operands of "
         "one byte as measured (here in bytes of BF16, twice as many); rows are BF16, which the "
         "published leads over DeepEP and NVLS ask for.",
         {"gpu.bf16_flops=1978.9 TFLOP/s", "gpu.kernels.torch.gemm_load=193.4 GB/s",
          "gpu.kernels.torch.grouped_load=122.8 GB/s"}},
        {"BF16", "GEMMs and rows are BF16.", {}},
    };
    return readings;
}

Reproduction reproduce_dysharp(const ReproduceOptions& options) {
    const DysharpScope scope = options.quick ? quick_dysharp() : whole_dysharp();
    Reproduction all;
    all.paper = "dysharp";
    all.title = "DySHARP";
    all.arxiv = "2605.05607";
    all.venue = "ISCA 2026";
    all.setup = setup_sentences(scope);
    all.means = Means::geometric;
    return reproduce_paper(std::move(all), dysharp_setup(), figures_of(scope), dysharp_reason,
                           options);
}

}  // namespace moehub
