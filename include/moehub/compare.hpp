/// Several systems on the same layer, or the same tensor-parallel sub-layers, side by side.
///
///     const Comparison comparison = compare(input, {"ideal", "megatron-te", "moe-hub"});
///     for (const ComparisonRow& row : comparison.rows)
///         fmt::print("{} {:.2f}\n", row.result.system, row.speedup);
///     const Comparison one = compare_tp({machine, model, 9216, SubLayer::l1},
///                                       load_tp_systems({"ideal", "tp-nvls", "cais"}));
#pragma once
#include <moehub/layer.hpp>
#include <moehub/tp.hpp>

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace moehub {

struct CompareOptions {
    LayerOptions layer;
    std::string baseline;  ///< one of the systems; empty: megatron-te where it ran, otherwise the
                           ///< slowest
    int threads = 0;  ///< systems simulated at a time; 0: as many as there are cores. The result is
                      ///< the same for any number, memory is not
    /// Called after each simulation with (simulations done, known), by one thread at a time: one of
    /// each system, of an eager one as many rounds as turn out to be needed, and ideal once more
    /// for each other format that experts compute in. May be empty.
    std::function<void(std::size_t, std::size_t)> progress;
};

struct ComparisonRow {
    SystemSpec system;
    LayerResult result;
    double speedup = 1;                    ///< the baseline's time over its own
    std::optional<double> share_of_ideal;  ///< ideal's time over its own, where ideal ran: an ideal
                                           ///< whose experts compute in the system's format
};

/// A system that a comparison does not have, and why, in a few words.
struct LeftOut {
    std::string system;
    std::string reason;
};

struct Comparison {
    std::string baseline;             ///< system whose time others are measured by
    std::vector<ComparisonRow> rows;  ///< one row per system, in the order asked for
    std::optional<Ps> other_ideal;    ///< ideal in the other format, for systems that compute in it
    std::vector<LeftOut> left_out;    ///< systems that were not simulated
};

/// Throws InputError when no system is named, one twice, or one that there is neither as a preset
/// nor as a file.
void check_systems(const std::vector<std::string>& systems);
/// Throws InputError as check_systems does.
std::vector<SystemSpec> load_systems(const std::vector<std::string>& names);

/// Throws as check_layer does before anything runs, then as simulate_layer does (of several
/// failures the first system's), and std::logic_error when verified outputs differ from the
/// reference layer's.
Comparison compare_systems(const LayerInput& input, const std::vector<SystemSpec>& systems,
                           const CompareOptions& options = {});
/// Compares systems by their names; throws as load_systems and compare_systems do.
Comparison compare(const LayerInput& input, const std::vector<std::string>& systems,
                   const CompareOptions& options = {});

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

/// Both throw InputError as check_systems and load_systems do.
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

/// Comparisons of the same systems, the parts one after the other, as one, with the baseline
/// that all have. Times, bytes and counts are added up; what units counted is left to the parts.
Comparison sum_of(const std::vector<Comparison>& parts);

}  // namespace moehub
