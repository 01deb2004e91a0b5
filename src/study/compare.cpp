#include "base/parallel.hpp"
#include "study/system_names.hpp"

#include <moehub/compare.hpp>
#include <moehub/error.hpp>
#include <moehub/presets.hpp>

#include <algorithm>
#include <map>

namespace moehub {
namespace {

constexpr std::string_view kIdeal = "ideal";
constexpr std::string_view kUsualBaseline = "megatron-te";

std::vector<LayerResult> simulate_all(const LayerInput& input,
                                      const std::vector<SystemSpec>& systems,
                                      const CompareOptions& options) {
    std::vector<LayerResult> results(systems.size());
    run_parallel(
        systems.size(),
        [&](std::size_t i) { results[i] = simulate_layer(input, systems[i], options.layer); },
        {options.threads, options.progress});
    return results;
}

const LayerResult* find(const std::vector<LayerResult>& results, std::string_view system) {
    const auto found = std::find_if(results.begin(), results.end(),
                                    [&](const auto& one) { return one.system == system; });
    return found == results.end() ? nullptr : &*found;
}

/// By the format in which experts compute; nothing where ideal was not asked for.
using IdealTimes = std::map<NumberFormat, Ps>;

/// Where systems compute in another format than ideal was asked for, ideal runs in theirs, too.
IdealTimes ideal_times(const LayerInput& input, const std::vector<SystemSpec>& systems,
                       const std::vector<LayerResult>& results, const LayerOptions& options) {
    IdealTimes times;
    const LayerResult* const found = find(results, kIdeal);
    if (found == nullptr) return times;
    SystemSpec ideal = systems[static_cast<std::size_t>(found - results.data())];
    times[ideal.expert_format] = found->time;
    for (const SystemSpec& system : systems) {
        if (times.contains(system.expert_format)) continue;
        ideal.expert_format = system.expert_format;
        times[ideal.expert_format] = simulate_layer(input, ideal, options).time;
    }
    return times;
}

double ratio(Ps time, Ps of) {
    return static_cast<double>(time) / static_cast<double>(of);
}

}  // namespace

std::vector<SystemSpec> load_systems(const std::vector<std::string>& names) {
    check_systems(names);
    std::vector<SystemSpec> systems;
    for (const std::string& name : names) systems.push_back(load_system(name));
    return systems;
}

void check_systems(const std::vector<std::string>& systems) {
    check_names(systems, moe_systems(), tp_systems());
}

Comparison compare(const LayerInput& input, const std::vector<std::string>& systems,
                   const CompareOptions& options) {
    return compare_systems(input, load_systems(systems), options);
}

Comparison compare_systems(const LayerInput& input, const std::vector<SystemSpec>& systems,
                           const CompareOptions& options) {
    check_unlike(systems);
    check_baseline(options.baseline, systems);
    for (const SystemSpec& system : systems) check_layer(input, system, options.layer);
    std::vector<LayerResult> results = simulate_all(input, systems, options);

    const IdealTimes ideal = ideal_times(input, systems, results, options.layer);
    const LayerResult* baseline =
        find(results, options.baseline.empty() ? kUsualBaseline : options.baseline);
    if (baseline == nullptr)
        baseline = &*std::max_element(results.begin(), results.end(),
                                      [](const auto& a, const auto& b) { return a.time < b.time; });
    Comparison comparison;
    comparison.baseline = baseline->system;
    for (std::size_t i = 0; i < systems.size(); ++i) {
        const LayerResult& result = results[i];
        ComparisonRow row{systems[i], result, ratio(baseline->time, result.time), {}};
        if (const auto bound = ideal.find(systems[i].expert_format); bound != ideal.end()) {
            row.share_of_ideal = ratio(bound->second, result.time);
            if (bound->second != find(results, kIdeal)->time)
                comparison.other_ideal = bound->second;
        }
        comparison.rows.push_back(std::move(row));
    }
    return comparison;
}

}  // namespace moehub
