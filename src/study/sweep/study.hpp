/// A study: what is simulated over and over, and what changes from point to point. A point is one
/// simulation: values of all axes, a seed, a system.
///
///     systems = ["ideal", "megatron-te", "moe-hub"]
///     seeds = 3
///     [set]
///     tokens = 8192
///     [grid]
///     link.latency = ["100 ns", "250 ns", "1 us"]
///
/// What the keys mean is not known here; docs/sweeps.md has the whole format.
#pragma once
#include "study/sweep/axis.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace moehub {

/// A number that is kept of a point.
struct SweepMeasure {
    std::string name;    ///< with its unit: "time_us", "up_bytes"
    bool whole = false;  ///< a whole number, exact in a double
};

/// A key with one value for all points.
struct StudySetting {
    std::string key;
    std::string value;
    std::string where;  ///< "my.toml:12", "--tokens"; for errors
};

struct Study {
    std::string name;
    std::string title;
    std::string origin;                  ///< the study's file, or how it was asked for
    std::string kind = "layer";          ///< what is asked at each point
    std::string kind_where = {};         ///< where the file names the kind
    std::vector<std::string> systems;    ///< systems; a single empty one where points have none
    std::vector<std::string> own_names;  ///< names that keys call systems by, "system.NAME.KEY"
    std::vector<SweepMeasure> measures;  ///< measures that are kept; the first is compared
    std::vector<std::string> seeds;      ///< seeds of each setting; none: as usual
    std::string baseline;                ///< one of the systems; empty: as usual
    std::vector<StudySetting> fixed;
    std::vector<SweepAxis> axes;  ///< axes: all combinations, the last changes fastest
};

inline constexpr std::size_t kMostPoints = 1000000;

/// Reads a study. Throws InputError: one line with the file, its line, the key and what is allowed.
Study parse_study(std::string_view text, const std::string& origin);
Study load_study(const std::string& path);

/// Seeds of a text: "3" as 1, 2, 3; "5,7" as they are. Throws InputError.
std::vector<std::string> parse_seeds(const std::string& text);

/// Throws InputError when a key or a value stands twice, an axis or a list of systems is empty, or
/// there are more than kMostPoints points.
void check(const Study& study);

/// Swept keys, in the order of the axes.
std::vector<std::string> keys_of(const Study& study);
/// Where a key was given, if it was.
std::optional<std::string> where_is(const Study& study, std::string_view key);
/// All that a study's points depend on, as the text of a study: equal texts, equal points.
std::string definition_of(const Study& study);

struct SweepPoint {
    std::size_t number = 0;           ///< number from 0, in the order of the table
    std::size_t setting = 0;          ///< number of the combination of the axes' values
    std::vector<std::string> values;  ///< values of keys_of(study)
    std::string seed;                 ///< seed of the point; empty: as usual
    std::string system;
};

std::size_t settings_in(const Study& study);
std::size_t points_in(const Study& study);
/// The point of a number; points are ordered by setting, seed, system.
SweepPoint point_of(const Study& study, std::size_t number);
/// Points that differ in keys of systems that they do not run are the same: the numbers of all that
/// are as this one, itself among them, in order.
std::vector<std::size_t> same_points(const Study& study, std::size_t number);
/// A point in words: "link.latency=100 ns, seed 2, moe-hub".
std::string words_of(const Study& study, const SweepPoint& point);

struct SweepOutcome {
    std::string refused;         ///< reason why it did not run; empty: it ran
    std::vector<double> values;  ///< values of the study's measures; none when refused

    bool ran() const { return refused.empty(); }
    bool operator==(const SweepOutcome&) const = default;
};

/// Outcomes by number of point; none where a point has not run.
using SweepOutcomes = std::vector<std::optional<SweepOutcome>>;

}  // namespace moehub
