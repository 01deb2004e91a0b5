/// Where a lead comes from, as text and JSON.
#pragma once
#include "base/json.hpp"
#include "report/text_style.hpp"
#include "study/layer_case.hpp"

#include <moehub/gain.hpp>

#include <string>
#include <vector>

namespace moehub {

struct GainCase {
    LayerCase layer;
    Gain gain;
};

std::string gain_text(const std::vector<GainCase>& cases, const TextStyle& style);
std::string gain_bars(const std::vector<GainCase>& cases, const TextStyle& style);
/// "cases", one per model.
Json gain_json(const std::vector<GainCase>& cases);

}  // namespace moehub
