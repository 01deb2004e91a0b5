/// The finished table of a sweep, and what it says in short: pure functions of the study and its
/// outcomes, the same whatever the order in which points ran.
#pragma once
#include "study/sweep/study.hpp"

#include <optional>
#include <string>
#include <vector>

namespace moehub {

/// The system whose times others are measured by: the one asked for, else megatron-te or tp-nvls,
/// else the first that is not the bound.
std::string baseline_of(const Study& study);

struct SweepRow {
    SweepPoint point;
    const SweepOutcome* outcome = nullptr;  ///< null: the point has not run
    std::optional<double> speedup;  ///< the baseline's time over its own, at the same setting
    std::optional<double> share_of_ideal;  ///< ideal's time over its own
};
/// A row for each point, in the order of their numbers. Refers to the outcomes.
std::vector<SweepRow> sweep_rows(const Study& study, const SweepOutcomes& outcomes);

/// One system at one setting, over its seeds.
struct SweepMean {
    std::vector<std::string> values;  ///< values of keys_of(study)
    std::string system;
    std::size_t runs = 0;
    std::string refused;            ///< why none ran, where none did
    double time_us = 0;             ///< mean of the runs
    double deviation = 0;           ///< standard deviation of the sample; 0 of a single run
    std::optional<double> speedup;  ///< geometric mean over seeds
    std::optional<double> share_of_ideal;
};
/// Means in the order of settings, then systems.
std::vector<SweepMean> sweep_means(const Study& study, const std::vector<SweepRow>& rows);

/// A value of an axis: how much faster than the baseline each system is there, over all other axes
/// and seeds.
struct AxisValue {
    std::string value;                            ///< value; zipped keys' with " / " between
    std::vector<std::optional<double>> speedups;  ///< speedup of each system, geometric mean
    std::vector<std::optional<double>> times_us;  ///< time of each system, geometric mean
};
struct AxisSummary {
    std::vector<AxisValue> values;
    std::size_t settings = 0;  ///< combinations of all other axes
    std::size_t shared = 0;    ///< settings that the means are over
};
/// Means over the same settings, so that they can be compared: those at which every system ran with
/// every value of the axis. A system that ran nowhere with a value is in no one's way, and has no
/// mean there.
AxisSummary axis_summary(const Study& study, const std::vector<SweepMean>& means, std::size_t axis);

}  // namespace moehub
