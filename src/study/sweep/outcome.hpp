/// What is kept of a point: numbers, or why its system cannot run it.
#pragma once
#include "study/sweep/study.hpp"

#include <moehub/layer.hpp>
#include <moehub/model_time.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace moehub {

struct SweepOutcome {
    std::string refused;         ///< the reason; empty: it ran
    std::vector<double> values;  ///< of measures_of(kind); none when refused

    bool ran() const { return refused.empty(); }
    bool operator==(const SweepOutcome&) const = default;
};

struct SweepMeasure {
    std::string name;    ///< with its unit: "time_us", "up_bytes"
    bool whole = false;  ///< a whole number, exact in a double
};
/// What is kept, "time_us" first.
const std::vector<SweepMeasure>& measures_of(StudyKind kind);

SweepOutcome outcome_of(const LayerResult& result);
SweepOutcome outcome_of(const ModelTime& time);

}  // namespace moehub
