/// Where a lead comes from, as text and JSON.
#pragma once
#include "study/layer_case.hpp"

#include <moehub/gain.hpp>

#include <string>
#include <vector>

namespace moehub {

struct GainCase {
    LayerCase layer;
    Gain gain;
};

std::string gain_text(const std::vector<GainCase>& cases, bool colour);
std::string gain_bars(const std::vector<GainCase>& cases);
std::string to_json(const std::vector<GainCase>& cases);

}  // namespace moehub
