/// The figures of the MoE-Hub paper (arXiv 2605.05888), each from cells that it looks up.
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

FigureResult layer_figure(const MoeHubScope& scope, const Lookup& cell);
FigureResult end_to_end_figure(const MoeHubScope& scope, const Lookup& cell);
FigureResult tokens_figure(const MoeHubScope& scope, const Lookup& cell);
FigureResult imbalance_figure(const MoeHubScope& scope, const Lookup& cell);
FigureResult ablation_figure(const MoeHubScope& scope, const Lookup& cell);
FigureResult scaling_figure(const MoeHubScope& scope, const Lookup& cell);

/// Why a number lies above or below the paper's, or a claim does not hold (then below).
std::string moe_hub_reason(std::string_view figure, std::string_view what, Side side);

inline constexpr std::string_view kMoeHub = "moe-hub";
inline constexpr std::string_view kIdeal = "ideal";
/// That the paper compares with, in its order.
inline constexpr std::array<std::string_view, 5> kMoeHubBaselines = {"megatron-te", "fastermoe",
                                                                     "tutel", "comet", "ccfuser"};

/// Where the figures vary nothing: 8 GPUs, Mixtral, 8,192 tokens.
inline constexpr const char* kUsualModel = "mixtral-8x7b";
inline constexpr int kUsualGpus = 8;
inline constexpr std::int64_t kUsualTokens = 8192;

}  // namespace moehub
