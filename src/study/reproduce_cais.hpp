/// The figures of the CAIS paper (arXiv 2605.05628), each from cells that it looks up.
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

/// A row of the paper's table of models.
struct CaisModel {
    std::string name;
    std::string model;  ///< a preset
    std::int64_t tokens = 0;
};

/// A larger model: its hidden size, FFN and heads.
struct CaisSize {
    int hidden = 0;
    int ffn = 0;
    int heads = 0;
};

/// A machine that the paper does not have.
struct CaisMachine {
    std::string machine;  ///< a preset
    int gpus = 0;
};

/// Which cells the figures have: the paper's, or a few of them.
struct CaisScope {
    std::vector<CaisModel> models;
    CaisModel usual;                       ///< where there is one: LLaMA-7B
    std::vector<std::string> parts;        ///< L1 to L4
    std::vector<std::string> few_parts;    ///< of sweeps: forward
    std::vector<int> merge_entries;        ///< of a port, ascending
    std::vector<int> gpus;                 ///< that the hidden size scales with, ascending
    std::vector<std::int64_t> all_reduce;  ///< bytes, ascending
    std::vector<std::int64_t> decode;      ///< tokens, ascending
    std::vector<CaisMachine> machines;
};
CaisScope whole_cais();
CaisScope quick_cais();

PaperSetup cais_setup();

/// A sub-layer on the paper's machine.
CellKey cais_cell(const CaisModel& model, std::string_view part, std::string_view system);
/// Of another size, as changes of the model.
std::vector<std::string> cais_size(const CaisSize& size);
inline constexpr CaisSize kCaisLlama{4096, 11264, 32};
inline constexpr CaisSize kCaisFullScale{8192, 22528, 64};

FigureResult cais_sub_layer_figure(const CaisScope& scope, const Lookup& cell);
FigureResult cais_inference_figure(const CaisScope& scope, const Lookup& cell);
FigureResult cais_training_figure(const CaisScope& scope, const Lookup& cell);
FigureResult cais_table_figure(const CaisScope& scope, const Lookup& cell);
FigureResult cais_utilisation_figure(const CaisScope& scope, const Lookup& cell);
FigureResult cais_scaling_figure(const CaisScope& scope, const Lookup& cell);
FigureResult cais_full_figure(const CaisScope& scope, const Lookup& cell);
FigureResult cais_nvls_figure(const CaisScope& scope, const Lookup& cell);
FigureResult cais_decode_figure(const CaisScope& scope, const Lookup& cell);
FigureResult cais_gpus_figure(const CaisScope& scope, const Lookup& cell);

/// Why a number lies above or below the paper's, or a claim does not hold (then below).
std::string cais_reason(std::string_view figure, std::string_view what, Side side);

inline constexpr std::string_view kCais = "cais";
inline constexpr std::string_view kCaisBase = "cais-base";
inline constexpr std::string_view kCaisPartial = "cais-partial";
inline constexpr std::string_view kCaisUncoordinated = "cais-uncoordinated";
inline constexpr std::string_view kTpNvls = "tp-nvls";

inline constexpr int kCaisGpus = 8;
inline constexpr int kCaisMergeEntries = 320;

}  // namespace moehub
