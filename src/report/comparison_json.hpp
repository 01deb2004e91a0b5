/// Parts of JSON that comparisons of several kinds have.
#pragma once
#include "base/json.hpp"

#include <moehub/compare.hpp>

namespace moehub {

/// One system; the software around it where that can differ.
Json row_json(const ComparisonRow& row, bool with_software);
/// [{"system", "reason"}, …]
Json left_out_json(const std::vector<LeftOut>& systems);

}  // namespace moehub
