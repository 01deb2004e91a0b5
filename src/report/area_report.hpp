/// What the proposals' tables take, as text and JSON.
#pragma once
#include "base/json.hpp"
#include "report/text_style.hpp"

#include <moehub/area.hpp>

#include <string>
#include <vector>

namespace moehub {

std::string area_text(const std::vector<AreaTable>& tables, const TextStyle& style);
Json area_json(const Machine& machine, const std::vector<AreaTable>& tables);

}  // namespace moehub
