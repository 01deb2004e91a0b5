/// A sweep's results as text, CSV and JSON.
#pragma once
#include "base/json.hpp"
#include "report/text_style.hpp"
#include "study/sweep/table.hpp"

#include <string>

namespace moehub {

/// "link-latency: 36 points: link.latency (4), 3 systems, 3 seeds".
std::string head_text(const Study& study);

/// Settings and systems with their times over seeds where they are few; the speed-up by axis; what
/// was refused, and why.
std::string sweep_text(const Study& study, const SweepOutcomes& outcomes, const TextStyle& style);

/// Reasons of refusals, a line each with how many points it is of.
std::string refused_text(const Study& study, const SweepOutcomes& outcomes);

/// What means by an axis are over: "all else", or fewer.
std::string all_else(const AxisSummary& summary);

/// The points of a study, one a line, each with why it will not run.
std::string points_text(const Study& study, const std::vector<std::string>& refusals);

/// One row a point: swept keys, system, seed, refused, speed-up, share of ideal, all measures.
std::string sweep_csv(const Study& study, const SweepOutcomes& outcomes);

/// `file` is the database.
Json sweep_json(const Study& study, const SweepOutcomes& outcomes, const std::string& file);

}  // namespace moehub
