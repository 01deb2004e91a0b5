/// The documents that commands print with --json.
#pragma once
#include "base/json.hpp"
#include "study/layer_case.hpp"
#include "study/tp_case.hpp"

#include <moehub/compare.hpp>

#include <string_view>
#include <vector>

namespace moehub::python {

Json comparison_document(std::string_view command, const LayerCase& layer,
                         const Comparison& comparison);
Json tp_document_of(std::string_view command, const TpCase& layer,
                    const std::vector<Comparison>& parts);

}  // namespace moehub::python
