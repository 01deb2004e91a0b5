/// Several systems on the same tensor-parallel sub-layers, side by side.
///
///     const Comparison one = compare_tp({machine, model, 9216, SubLayer::l1},
///                                       load_tp_systems({"ideal", "tp-nvls", "cais"}));
///     for (const ComparisonRow& row : one.rows)
///         fmt::print("{} {:.2f}\n", row.result.system, row.speedup);
#pragma once
#include <moehub/compare.hpp>
#include <moehub/tp.hpp>

namespace moehub {

struct TpCompareOptions {
    TpOptions layer;
    std::string
        baseline;     ///< one of the systems; empty: tp-nvls where it ran, otherwise the slowest
    int threads = 0;  ///< sub-layers simulated at a time; 0: as many as there are cores. The result
                      ///< is the same for any number
    /// Called after each sub-layer of a system with (done, in all), by one thread at a time. May be
    /// empty.
    std::function<void(std::size_t, std::size_t)> progress;
};

/// Throw InputError as check_systems and load_systems do.
void check_tp_systems(const std::vector<std::string>& systems);
std::vector<SystemSpec> load_tp_systems(const std::vector<std::string>& names);

/// The baseline is tp-nvls where it ran, otherwise the slowest. Throws as check_tp does before
/// anything runs, then as simulate_tp does.
Comparison compare_tp(const TpInput& input, const std::vector<SystemSpec>& systems,
                      const TpCompareOptions& options = {});

/// One comparison for each of the parts, which take the place of the input's own.
std::vector<Comparison> compare_tp_parts(const TpInput& input, const std::vector<SubLayer>& parts,
                                         const std::vector<SystemSpec>& systems,
                                         const TpCompareOptions& options = {});

/// Of comparisons of the same systems: the parts one after the other, as one, with the baseline
/// that all have. Times, bytes and counts are added up; what units counted is left to the parts.
Comparison sum_of(const std::vector<Comparison>& parts);

}  // namespace moehub
