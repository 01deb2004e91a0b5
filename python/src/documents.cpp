#include "documents.hpp"

#include "report/comparison.hpp"
#include "report/tp_comparison.hpp"

namespace moehub::python {

Json comparison_document(std::string_view, const LayerCase& layer, const Comparison& comparison) {
    return Json::parse(to_json(layer, comparison));
}

Json tp_document_of(std::string_view, const TpCase& layer, const std::vector<Comparison>& parts) {
    return Json::parse(to_json(layer, parts));
}

}  // namespace moehub::python
