/// The figures of the DySHARP paper (arXiv 2605.05607).
#pragma once
#include "study/reproduce_paper.hpp"

#include <string>
#include <vector>

namespace moehub {

/// A row of the paper's table of configurations.
struct DysharpConfig {
    std::string name;
    std::string model;  ///< a preset
    int experts = 0;    ///< experts of the model
    int top_k = 0;
    int sequence = 0;  ///< tokens of a GPU
};

/// Which cells the figures have: the paper's, or a few of them.
struct DysharpScope {
    std::vector<DysharpConfig> configs;       ///< configurations of layer, training, traffic
    DysharpConfig large;                      ///< configuration of wire and ablation
    std::vector<DysharpConfig> gpus_configs;  ///< configurations of the sweep over GPUs
    std::vector<int> gpus;                    ///< numbers of GPUs, ascending
    DysharpConfig usual;                      ///< configuration of the other sweeps
    std::vector<int> sequences;               ///< tokens of a GPU, ascending
    std::vector<double> deviations;           ///< deviations of the token share per expert
    std::vector<double> skews;                ///< exponents of a power law
    std::vector<int> skew_sequences;          ///< tokens of a GPU: of decoding, of a prompt
    std::vector<int> tlb_entries;             ///< entries, ascending, with the paper's choice
    std::vector<int> sum_packets;             ///< packets, ascending, with the paper's choice
    int unit_sequence = 0;                    ///< tokens of a GPU in packet grain
};
DysharpScope whole_dysharp();

const Publication& dysharp_paper();

/// One layer of a configuration; where there are more GPUs than the machine has, more switches.
struct DysharpPoint {
    DysharpConfig config;
    int gpus = 0;
    std::string routing;

    CellKey under(std::string_view system, CellWork work = CellWork::layer) const;
};
/// A configuration as the paper runs it where nothing is varied: 32 GPUs, its deviation.
DysharpPoint usual_point(const DysharpConfig& config);

/// What the paper's standard deviation of the experts' shares is a part of; it does not say.
enum class DeviationOf {
    even_share,  ///< the share that each expert has if all are alike
    tokens,      ///< tokens with top-k choices each: an even share is top-k / experts of them
    choices,     ///< choices of all tokens: an even share is 1 / experts of them
};
std::string dysharp_routing(const DysharpConfig& config, double deviation,
                            DeviationOf of = DeviationOf::even_share);

/// Figures of what crosses the wires, and of DySHARP taken apart.
std::vector<PaperFigure> dysharp_parts(const DysharpScope& scope);
/// Figures of how large its units need to be.
std::vector<PaperFigure> dysharp_units(const DysharpScope& scope);

}  // namespace moehub
