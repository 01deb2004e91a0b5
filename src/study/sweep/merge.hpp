/// Databases of parts of a sweep, joined into one.
#pragma once
#include "study/sweep/table.hpp"

#include <string>
#include <vector>

namespace moehub {

struct MergedSweep {
    Study study;
    SweepOutcomes outcomes;
    std::size_t missing = 0;  ///< points that no file has
};

/// Writes the rows of all files to `target`, as one that was never cut: into a neighbour first,
/// then renamed. Throws InputError, with `target` as it was, when it exists, when a file is of
/// another schema, program or study than the first or being written, or when two have different
/// results for a point.
MergedSweep merge_sweeps(const std::string& target, const std::vector<std::string>& sources);

}  // namespace moehub
