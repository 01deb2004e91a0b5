/// The figures of the DySHARP paper (arXiv 2605.05607), each from cells that it looks up.
#pragma once
#include "study/figure_result.hpp"
#include "study/reproduce_cells.hpp"

#include <moehub/reproduce.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace moehub {

/// A row of the paper's table of configurations.
struct DysharpConfig {
    std::string name;
    std::string model;  ///< a preset
    int experts = 0;    ///< its
    int top_k = 0;
    int sequence = 0;  ///< tokens of a GPU
};

/// Which cells the figures have: the paper's, or a few of them.
struct DysharpScope {
    std::vector<DysharpConfig> configs;        ///< layer, training, traffic
    DysharpConfig large;                       ///< wire and ablation
    std::vector<DysharpConfig> gpus_configs;   ///< of the sweep over GPUs
    std::vector<int> gpus;                     ///< ascending
    DysharpConfig usual;                       ///< of the other sweeps
    std::vector<int> sequences;                ///< ascending
    std::vector<double> deviations;            ///< of the token share per expert
    std::vector<double> skews;                 ///< of a power law
    std::vector<std::int64_t> skew_sequences;  ///< tokens of a GPU: of decoding, of a prompt
    std::vector<int> tlb_entries;              ///< ascending, with the paper's choice
    std::vector<int> sum_packets;              ///< likewise
    int unit_sequence = 0;                     ///< tokens of a GPU in packet grain
};
DysharpScope whole_dysharp();
DysharpScope quick_dysharp();

PaperSetup dysharp_setup();

/// One layer of a configuration; where there are more GPUs than the machine has, more switches.
struct DysharpPoint {
    DysharpConfig config;
    int gpus = 0;
    std::string routing;

    CellKey under(std::string_view system, CellWork work) const;
};
/// As the paper runs everything that it does not vary: 32 GPUs, its standard deviation.
DysharpPoint usual_point(const DysharpConfig& config);

/// What the paper's standard deviation of the experts' shares is a part of; it does not say.
enum class DeviationOf {
    even_share,  ///< what each expert has if all are alike
    tokens,      ///< each with top-k choices: an even share is top-k / experts of them
    choices,     ///< of all tokens: an even share is 1 / experts of them
};
std::string dysharp_routing(const DysharpConfig& config, double deviation,
                            DeviationOf of = DeviationOf::even_share);

FigureResult dysharp_layer_figure(const DysharpScope& scope, const Lookup& cell);
FigureResult dysharp_training_figure(const DysharpScope& scope, const Lookup& cell);
FigureResult dysharp_traffic_figure(const DysharpScope& scope, const Lookup& cell);
FigureResult dysharp_wire_figure(const DysharpScope& scope, const Lookup& cell);
FigureResult dysharp_ablation_figure(const DysharpScope& scope, const Lookup& cell);
FigureResult dysharp_gpus_figure(const DysharpScope& scope, const Lookup& cell);
FigureResult dysharp_sequence_figure(const DysharpScope& scope, const Lookup& cell);
FigureResult dysharp_deviation_figure(const DysharpScope& scope, const Lookup& cell);
FigureResult dysharp_skew_figure(const DysharpScope& scope, const Lookup& cell);
FigureResult dysharp_tlb_figure(const DysharpScope& scope, const Lookup& cell);
FigureResult dysharp_buffer_figure(const DysharpScope& scope, const Lookup& cell);

/// Why a number lies above or below the paper's, or a claim does not hold (then below).
std::string dysharp_reason(std::string_view figure, std::string_view what, Side side);

inline constexpr std::string_view kDysharp = "dysharp";
inline constexpr std::string_view kPrimitivesAlone = "dysharp-basic";
inline constexpr std::string_view kFusionAlone = "fusion-only";
inline constexpr std::string_view kNeither = "steps-only";
inline constexpr std::string_view kPrimitivesUnderComet = "dysharp-comet";
inline constexpr std::string_view kDualPipe = "dualpipe";
inline constexpr std::string_view kDeepEp = "deepep";
inline constexpr std::string_view kNvls = "nvls";
inline constexpr std::string_view kComet = "comet";
/// That the paper compares layers with, in its order.
inline constexpr std::array<std::string_view, 6> kDysharpBaselines = {
    kDeepEp, kNvls, "fastermoe", "tutel", "ccfuser", kComet};

inline constexpr int kDysharpGpus = 32;
inline constexpr double kDysharpDeviation = 0.032;
inline constexpr int kDysharpTlbEntries = 512;
inline constexpr int kDysharpSumPackets = 512;  ///< 64 KB

}  // namespace moehub
