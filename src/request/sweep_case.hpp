/// What a point of a study simulates, whichever its kind.
#pragma once
#include "request/model_arguments.hpp"
#include "study/sweep/outcome.hpp"

#include <optional>
#include <string>
#include <vector>

namespace moehub {

/// One of the two; `options` of whole models.
struct SweepCase {
    StudyKind kind = StudyKind::layer;
    std::optional<LayerCase> layer;  ///< with experts
    std::optional<TpCase> tp;        ///< without
    ModelOptions options;
};

/// Systems of a layer, or of a whole model, which may be of either sort. Throws InputError.
void check_case_systems(StudyKind kind, const std::vector<std::string>& systems);

/// Throws InputError.
SweepCase load_case(StudyKind kind, const ModelArguments& arguments);

/// All that the result depends on besides the system.
std::string fingerprint_of(const SweepCase& loaded);

/// Why the system cannot run it; empty: it can.
std::string why_not(const SweepCase& loaded, const SystemSpec& system);

/// Throws InputError where the system cannot run it.
SweepOutcome simulate_case(const SweepCase& loaded, const SystemSpec& system);

}  // namespace moehub
