/// The JSON files of layouts, by their content.
#pragma once
#include "place/layout/json_document.hpp"
#include "place/layout/layout_formats.hpp"

namespace moehub {

ExpertLayout read_sglang(const JsonValue& document, const LayoutFile& file);
/// [[…], …], or one list that holds for all layers.
ExpertLayout read_vllm(const JsonValue& document, const LayoutFile& file);
/// {"expert_to_ep_rank": …}: expert → GPU, of each layer or of all.
ExpertLayout read_ranks(const JsonValue& document, const LayoutFile& file);
ExpertLayout read_vllm_ascend(const JsonValue& document, const LayoutFile& file);

}  // namespace moehub
