/// One family of parallel layouts: which of its members are worth timing, and their times.
#pragma once
#include "plan/search/families.hpp"
#include "plan/search/record.hpp"

#include <optional>
#include <string>
#include <vector>

namespace moehub {

struct FamilyResult {
    std::string refused;                  ///< why_not, of all its members; empty: allowed
    std::string cannot_run;               ///< what its system says; empty: it runs
    std::vector<TrainingStep> steps;      ///< that fit and were timed; the first is the fastest
    std::optional<SizedLayout> smallest;  ///< where nothing fits: by least_memory()
    std::size_t layouts = 0;
    std::size_t timed = 0;
    std::size_t too_large = 0;
};

struct FamilySearch {
    const std::vector<Saving>& savings;
    const SearchRecord& record;  ///< does not change meanwhile
    bool prune = true;

    /// `family`: as layout_families gives it.
    FamilyResult look_at(const ParallelLayout& family, TrainingClock& clock) const;
};

}  // namespace moehub
