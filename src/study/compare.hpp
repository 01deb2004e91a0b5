/// Lists of systems that someone typed, and comparisons of systems that are known to run.
#pragma once
#include <moehub/compare.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace moehub {

struct KindOfSystems {
    std::string_view words;  ///< what the systems run
    std::vector<SystemInfo> (*all)();
};
KindOfSystems moe_systems();
KindOfSystems tp_systems();

std::vector<std::string> names_of(const KindOfSystems& kind);

/// Throws InputError when none is named, one twice, or one that is neither of this kind nor a file;
/// `other` is the kind that it may be of instead.
void check_names(const std::vector<std::string>& systems, const KindOfSystems& kind,
                 const KindOfSystems& other);

/// Throws InputError when the baseline, if one is named, is none of the systems.
void check_baseline(const std::string& baseline, const std::vector<SystemSpec>& systems);

/// One time as a part of another.
inline double ratio(Ps time, Ps of) {
    return static_cast<double>(time) / static_cast<double>(of);
}

/// Throws InputError when two systems have the same name.
void check_unlike(const std::vector<SystemSpec>& systems);

/// Compares as compare_systems() does, which checks systems first (check_layer).
Comparison compare_checked(const LayerInput& input, const std::vector<SystemSpec>& systems,
                           const CompareOptions& options);

/// Results of tensor-parallel sub-layers, at least one, of the systems in their order, as a
/// comparison. `baseline` is one of them; empty: as compare_tp() says.
Comparison tp_rows(const std::vector<SystemSpec>& systems, const std::vector<LayerResult>& results,
                   std::string_view baseline = {});

}  // namespace moehub
