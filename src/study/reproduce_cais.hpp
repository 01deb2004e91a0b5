/// The figures of the CAIS paper (arXiv 2605.05628).
#pragma once
#include "study/reproduce_paper.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace moehub {

/// A row of the paper's table of models.
struct CaisModel {
    std::string name;
    std::string model;  ///< a preset
    std::int64_t tokens = 0;
};

/// A machine that the paper does not have.
struct CaisMachine {
    std::string machine;  ///< a preset
    int gpus = 0;
};

/// Which cells the figures have: the paper's, or a few of them.
struct CaisScope {
    std::vector<CaisModel> models;
    CaisModel usual;                       ///< model of figures with one model: LLaMA-7B
    std::vector<std::string> parts;        ///< sub-layers L1 to L4
    std::vector<std::string> few_parts;    ///< sub-layers of sweeps: forward
    std::vector<int> merge_entries;        ///< merge entries of a port, ascending
    std::vector<int> gpus;                 ///< GPUs that the hidden size scales with, ascending
    std::vector<std::int64_t> all_reduce;  ///< bytes, ascending
    std::vector<std::int64_t> decode;      ///< tokens, ascending
    std::vector<CaisMachine> machines;
};

const Publication& cais_paper();

/// A sub-layer on the paper's machine.
CellKey cais_cell(const CaisModel& model, std::string_view part, std::string_view system = "");

FigureResult cais_table(const CaisScope& scope, const Lookup& cell);
FigureResult cais_utilisation(const CaisScope& scope, const Lookup& cell);
FigureResult cais_nvls(const CaisScope& scope, const Lookup& cell);

inline constexpr int kCaisGpus = 8;
inline constexpr int kCaisMergeEntries = 320;

}  // namespace moehub
