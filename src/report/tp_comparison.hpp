/// Comparisons of systems on tensor-parallel sub-layers, for people and for programs.
#pragma once
#include "base/json.hpp"
#include "report/text_style.hpp"
#include "study/tp_case.hpp"

#include <moehub/tp_compare.hpp>

#include <string>
#include <vector>

namespace moehub {

/// What was simulated, in one line; a second one says what was set.
std::string head_text(const TpCase& layer);

/// A row per system. Speed-up and share of ideal need more than one.
std::string tp_table_text(const Comparison& comparison, const TextStyle& style);

/// Several sub-layers: a column of times for each, and their sum.
std::string tp_table_text(const TpCase& layer, const std::vector<Comparison>& parts,
                          const TextStyle& style);

/// What every run checked.
std::string tp_checks_text(const TpCase& layer, const Comparison& comparison);

/// What CAIS's dataflow optimizer made of the sub-layer; empty for other programs.
std::string dataflow_text(const TpInput& input, const SystemSpec& system);

/// The sub-layer and "results", one per system; times in µs, sizes in bytes. Of several sub-layers
/// "sub_layers", each as it is alone, and "results" of all, one after the other.
Json tp_comparison_json(const TpCase& layer, const std::vector<Comparison>& parts);

}  // namespace moehub
