/// Pages of simulated layers: systems beside one another, their traffic, their time line and what
/// their units counted. Also the sections by themselves, for pages of whole models.
#pragma once
#include "report/page.hpp"
#include "study/layer_case.hpp"
#include "study/tp_case.hpp"

#include <moehub/compare.hpp>

#include <optional>
#include <string>
#include <vector>

namespace moehub {

/// `document` of a page is the caller's to fill in, and its command.
Page comparison_page(const LayerCase& layer, const Comparison& comparison);
/// One comparison for each of the sub-layers.
Page tp_comparison_page(const TpCase& layer, const std::vector<Comparison>& parts);

/// Time divided up, speed-ups and a table. `what` is the heading.
PageSection systems_section(const Comparison& comparison, const std::string& what);
/// Bytes by direction, and from GPU to GPU where that was recorded.
PageSection traffic_section(const Comparison& comparison);
/// Every GPU over time.
PageSection timeline_section(const Comparison& comparison);
/// Statistics × systems.
PageSection units_section(const Comparison& comparison);

/// The machine, the model where there is one, and the systems as TOML.
std::vector<std::pair<std::string, std::string>> configuration_of(
    const Machine& machine, const std::optional<Model>& model,
    const std::vector<SystemSpec>& systems);

}  // namespace moehub
