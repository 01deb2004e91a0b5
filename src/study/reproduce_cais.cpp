#include "study/reproduce_cais.hpp"

#include "study/reproduce_paper.hpp"

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;
constexpr int kUnlimited = 100'000;  ///< entries of a port, more than any sub-layer needs

std::vector<PaperFigure> figures_of(const CaisScope& scope) {
    const auto of = [&scope](FigureResult (*make)(const CaisScope&, const Lookup&)) {
        return [scope, make](const Lookup& cell) { return make(scope, cell); };
    };
    return {
        {"sub-layer", "L1 to L4 of three models, nine baselines", of(cais_sub_layer_figure)},
        {"inference", "whole models, forward", of(cais_inference_figure)},
        {"training", "whole models, forward and backward", of(cais_training_figure)},
        {"table", "merging tables with and without coordination", of(cais_table_figure)},
        {"utilisation", "use of the links under its ablations", of(cais_utilisation_figure)},
        {"scaling", "8 to 32 GPUs, hidden size with them", of(cais_scaling_figure)},
        {"full", "full scale: LLaMA-7B twice as wide, 132 SMs", of(cais_full_figure), false},
        {"nvls", "in-switch all-reduce against hardware", of(cais_nvls_figure), false},
        {"decode", "beyond the paper: few tokens", of(cais_decode_figure)},
        {"gpus", "beyond the paper: larger machines", of(cais_gpus_figure), false},
    };
}

std::vector<std::string> setup_sentences() {
    return {
        "Machine dgx-h100 with 66 SMs, half of an H100's, as the paper's; 8 GPUs, 4 switches, row "
        "grain.",
        "Its network: headers of a single flit, no credit updates, no second address flit of "
        "multicasts. Kernels are simulated, not NCCL's host: collectives start in 4 µs, and their "
        "buffers are registered, so that nothing is copied in and out.",
        "The last GPU's clock is 5 % lower than the first's: GPUs of one kind differ by that much, "
        "and it is drift that coordination is for. How much the paper's simulator has is not "
        "published.",
        "Mega-GPT-4B 16,384 tokens, Mega-GPT-8B 12,288, LLaMA-7B 9,216: the paper's sequences and "
        "batches, its sizes as listed (already halved). Its FFN1 is one GEMM of the FFN's width: "
        "LLaMA's gate is left out, with which its L1 would be apart from all other sub-layers.",
        "Sub-layers have the norm alone between their GEMMs. Whole models add the residual there, "
        "and everything else is timed by the GPU's model and the same for all systems, under CUDA "
        "graphs.",
        "Use of links: share of a sub-layer's time in which a GPU's links carried flits, mean over "
        "GPUs and both directions.",
        "Tables of merge units: entries of 128 B that a port holds. Where a need is measured, "
        "uncoordinated entries have no limit and wait 1 ms, so that nothing is hidden by "
        "evictions. In that figure GPUs start up to 35 µs apart, the spread of requests that the "
        "paper reports: GPUs of a simulation are alike, and a spread of clocks alone moves them "
        "apart by a few µs.",
        "The figures nvls and gpus run on machines as their presets are."};
}

}  // namespace

std::vector<NamedFigure> cais_figures() {
    return names_of(figures_of(whole_cais()));
}

CaisScope whole_cais() {
    CaisScope scope;
    scope.usual = {"LLaMA-7B", "llama-7b", 9216};
    scope.models = {
        {"Mega-GPT-4B", "mega-gpt-4b", 16384}, {"Mega-GPT-8B", "mega-gpt-8b", 12288}, scope.usual};
    scope.parts = {"L1", "L2", "L3", "L4"};
    scope.few_parts = {"L1", "L2"};
    scope.merge_entries = {40, 80, 160, kCaisMergeEntries, 640, 1280, 2560, kUnlimited};
    scope.gpus = {8, 16, 32};
    scope.all_reduce = {kGiB, 2 * kGiB, 4 * kGiB, 8 * kGiB, 16 * kGiB};
    scope.decode = {8, 32, 128, 512};
    scope.machines = {{"gh200-nvl32", 16}, {"gh200-nvl32", 32}, {"gb200-nvl72", 72}};
    return scope;
}

CaisScope quick_cais() {
    CaisScope scope;
    scope.usual = {"LLaMA-7B", "llama-7b", 1024};
    scope.models = {scope.usual};
    scope.parts = {"L1"};
    scope.few_parts = {"L1"};
    scope.merge_entries = {40, kCaisMergeEntries, kUnlimited};
    scope.gpus = {8, 16};
    scope.all_reduce = {kGiB / 16};
    scope.decode = {8, 128};
    scope.machines = {{"gh200-nvl32", 16}};
    return scope;
}

/// One parameter set for every figure; 32 GPUs are still one node.
PaperSetup cais_setup() {
    PaperSetup setup{
        "dgx-h100",
        {"max_gpus=32", "gpu.sms=66", "gpu_spread=0.05", "link.multicast_flits=0",
         "link.credit_flits=0", "collective.switch_launch=4 us", "collective.launch=4 us",
         "collective.channel_copy=1 TB/s", "model.gated=false"},
        cais_readings()};
    setup.eager = false;
    setup.residual = false;
    return setup;
}

CellKey cais_cell(const CaisModel& model, std::string_view part, std::string_view system) {
    CellKey key{model.model, kCaisGpus, model.tokens, "", std::string(system)};
    key.work = CellWork::sub_layer;
    key.part = part;
    return key;
}

std::vector<std::string> cais_size(const CaisSize& size) {
    return {fmt::format("model.hidden={}", size.hidden),
            fmt::format("model.dense_ffn={}", size.ffn),
            fmt::format("model.attention.heads={}", size.heads),
            fmt::format("model.attention.kv_heads={}", size.heads)};
}

const std::vector<Reading>& cais_readings() {
    static const std::vector<Reading> readings = {
        {"fast SMs",
         "66 SMs, each four times as fast as an H100's: then the in-switch all-reduce of LLaMA-7B "
         "takes about as much longer than its GEMMs as the paper says, whose links carry flits "
         "nearly all the time.",
         {"gpu.bf16_flops=1978.8 TFLOP/s", "gpu.kernels.torch.gemm_load=432 GB/s",
          "gpu.kernels.torch.gemm_store=163.2 GB/s", "gpu.kernels.torch.norm_load=109.6 GB/s",
          "gpu.kernels.torch.stream_load=121.2 GB/s"}},
        {"H100 SMs", "66 of an H100's 132 SMs.", {"gpu.bf16_flops=494.7 TFLOP/s"}},
    };
    return readings;
}

Reproduction reproduce_cais(const ReproduceOptions& options) {
    const CaisScope scope = options.quick ? quick_cais() : whole_cais();
    Reproduction all;
    all.paper = "cais";
    all.title = "CAIS";
    all.arxiv = "2605.05628";
    all.venue = "HPCA 2026";
    all.setup = setup_sentences();
    all.means = Means::geometric;
    return reproduce_paper(std::move(all), cais_setup(), figures_of(scope), cais_reason, options);
}

}  // namespace moehub
