/// What the proposals' tables take, as text and JSON.
#pragma once
#include <moehub/area.hpp>

#include <string>
#include <vector>

namespace moehub {

std::string area_text(const std::vector<AreaTable>& tables, bool colour);
std::string to_json(const Machine& machine, const std::vector<AreaTable>& tables);

}  // namespace moehub
