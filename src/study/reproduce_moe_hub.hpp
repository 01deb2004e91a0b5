/// The figures of the MoE-Hub paper (arXiv 2605.05888).
#pragma once
#include "study/reproduce_tables.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace moehub {

/// Which cells the figures have: the paper's, or a few of them.
struct MoeHubScope {
    std::vector<std::string> models;
    std::vector<int> grid_gpus;             ///< layer and end-to-end
    std::vector<std::int64_t> grid_tokens;  ///< likewise
    std::vector<std::int64_t> few_tokens;   ///< of the sweep over tokens
    std::vector<std::int64_t> many_tokens;  ///< likewise
    std::vector<double> spreads;            ///< of the token share per expert; 0: uniform
    std::vector<std::int64_t> ablation;     ///< tokens
    std::vector<int> scaling;               ///< GPUs, ascending
    std::vector<std::string> scaling_models;
};
MoeHubScope whole_moe_hub();
MoeHubScope quick_moe_hub();

PaperSetup moe_hub_setup();
std::vector<PaperFigure> moe_hub_figures(const MoeHubScope& scope);
Reproduction reproduce_moe_hub(const ReproduceOptions& options);

/// Mixtral on 8 GPUs and 8,192 tokens, where a figure does not vary them.
CellKey moe_hub_cell(std::string_view system);
/// MoE-Hub and those that the paper compares with, in its order.
Leads moe_hub_leads(Ps ReproducedCell::*time = &ReproducedCell::time);

FigureResult moe_hub_ablation(const MoeHubScope& scope, const Lookup& cell);
FigureResult moe_hub_scaling(const MoeHubScope& scope, const Lookup& cell);

}  // namespace moehub
