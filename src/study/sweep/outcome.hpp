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
    std::vector<double> values;  ///< of the study's measures; none when refused

    bool ran() const { return refused.empty(); }
    bool operator==(const SweepOutcome&) const = default;
};

}  // namespace moehub
