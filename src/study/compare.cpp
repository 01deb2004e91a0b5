#include "base/nearest.hpp"
#include "base/parallel.hpp"
#include "base/quantity.hpp"

#include <moehub/compare.hpp>
#include <moehub/error.hpp>
#include <moehub/presets.hpp>

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

constexpr std::string_view kIdeal = "ideal";
constexpr std::string_view kUsualBaseline = "megatron-te";

std::vector<std::string> system_names() {
    std::vector<std::string> names;
    for (const SystemInfo& system : all_systems()) names.push_back(system.name);
    return names;
}

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
struct IdealTimes {
    std::optional<Ps> bf16;
    std::optional<Ps> fp8;
};

/// Where systems compute in another format than ideal was asked for, ideal runs in theirs, too.
IdealTimes ideal_times(const LayerInput& input, const std::vector<SystemSpec>& systems,
                       const std::vector<LayerResult>& results, const LayerOptions& options) {
    IdealTimes times;
    const LayerResult* const found = find(results, kIdeal);
    if (found == nullptr) return times;
    SystemSpec ideal = systems[static_cast<std::size_t>(found - results.data())];
    (ideal.fp8_experts ? times.fp8 : times.bf16) = found->time;
    ideal.fp8_experts = !ideal.fp8_experts;
    const bool wanted = std::any_of(systems.begin(), systems.end(), [&](const SystemSpec& system) {
        return system.fp8_experts == ideal.fp8_experts;
    });
    if (!wanted) return times;
    (ideal.fp8_experts ? times.fp8 : times.bf16) = simulate_layer(input, ideal, options).time;
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
    const std::vector<std::string> known = system_names();
    if (systems.empty())
        throw InputError(fmt::format("no system is named, allowed: {}", fmt::join(known, ", ")));
    for (auto name = systems.begin(); name != systems.end(); ++name) {
        const bool file = name->ends_with(".toml") || name->find('/') != name->npos;
        if (file)
            load_system(*name);
        else if (std::find(known.begin(), known.end(), *name) == known.end())
            throw InputError(fmt::format("unknown system {}, allowed: {}{}", moehub::quoted(*name),
                                         fmt::join(known, ", "), did_you_mean(*name, known)));
        if (std::find(systems.begin(), name, *name) != name)
            throw InputError(fmt::format("system {} is named twice, allowed: once", quoted(*name)));
    }
}

Comparison compare(const LayerInput& input, const std::vector<std::string>& systems,
                   const CompareOptions& options) {
    return compare_systems(input, load_systems(systems), options);
}

Comparison compare_systems(const LayerInput& input, const std::vector<SystemSpec>& systems,
                           const CompareOptions& options) {
    for (auto system = systems.begin(); system != systems.end(); ++system) {
        const bool twice = std::any_of(systems.begin(), system, [&](const SystemSpec& other) {
            return other.name == system->name;
        });
        if (twice)
            throw InputError(fmt::format("two systems are named {}, allowed: one of a name",
                                         moehub::quoted(system->name)));
        check_layer(input, *system, options.layer);
    }
    std::vector<LayerResult> results = simulate_all(input, systems, options);

    const IdealTimes ideal = ideal_times(input, systems, results, options.layer);
    const LayerResult* baseline = find(results, kUsualBaseline);
    if (baseline == nullptr)
        baseline = &*std::max_element(results.begin(), results.end(),
                                      [](const auto& a, const auto& b) { return a.time < b.time; });
    Comparison comparison;
    comparison.baseline = baseline->system;
    if (ideal.bf16 && ideal.fp8)
        comparison.other_ideal =
            find(results, kIdeal)->time == *ideal.bf16 ? ideal.fp8 : ideal.bf16;
    for (std::size_t i = 0; i < systems.size(); ++i) {
        const LayerResult& result = results[i];
        ComparisonRow row{systems[i], result, ratio(baseline->time, result.time), {}};
        const std::optional<Ps>& bound = systems[i].fp8_experts ? ideal.fp8 : ideal.bf16;
        if (bound) row.share_of_ideal = ratio(*bound, result.time);
        comparison.rows.push_back(std::move(row));
    }
    return comparison;
}

}  // namespace moehub
