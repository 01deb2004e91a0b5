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

}  // namespace moehub
