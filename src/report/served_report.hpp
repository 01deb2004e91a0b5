/// A served model as text and JSON: where a step's time goes under each system, and sizes beside
/// one another.
#pragma once
#include "base/json.hpp"
#include "report/text_style.hpp"

#include <moehub/compare.hpp>
#include <moehub/served_model.hpp>

#include <optional>
#include <string>
#include <vector>

namespace moehub {

/// What was asked, and what each system made of it.
struct ServedCase {
    Serving serving;
    std::string machine_name;
    std::string weights;                ///< format, as typed
    std::string routing;                ///< generator or recording
    std::string layout;                 ///< file; empty: none
    std::vector<std::string> settings;  ///< what was changed
    std::vector<ServedStep> steps;
    std::vector<LeftOut> left_out;
};

std::string head_text(const ServedCase& what);
std::string operators_text(const ServedCase& what, const TextStyle& style);
std::string steps_text(const ServedCase& what, const TextStyle& style);
Json served_json(const ServedCase& what);

/// Sizes of one system.
struct SizesCase {
    ServedCase what;  ///< without steps; its serving is one of the sizes
    std::string system;
    std::vector<ServedPoint> points;
    std::optional<SystemSpec> spec = {};  ///< nothing: the engine's own
};
std::string head_text(const SizesCase& sizes);
std::string sizes_text(const SizesCase& sizes, const TextStyle& style);
Json served_json(const SizesCase& sizes);

}  // namespace moehub
