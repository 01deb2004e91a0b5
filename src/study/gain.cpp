#include "base/parallel.hpp"

#include <moehub/error.hpp>
#include <moehub/gain.hpp>
#include <moehub/presets.hpp>

#include <algorithm>

namespace moehub {
namespace {

bool can_run(const LayerInput& input, const SystemSpec& system, const LayerOptions& options) {
    try {
        check_layer(input, system, options);
        return true;
    } catch (const InputError&) {
        return false;
    }
}

/// The software that all systems have in the end.
Software equal_software(const GainOptions& options) {
    return {HostMode::graph, true, options.fp8};
}

std::vector<SystemSpec> candidates(const LayerInput& input, const GainOptions& options) {
    std::vector<SystemSpec> list;
    for (const SystemSpec& one : options.todays) {
        SystemSpec system = with_software(one, equal_software(options));
        if (can_run(input, system, options.layer)) list.push_back(std::move(system));
    }
    return list;
}

}  // namespace

std::vector<std::string> todays_systems() {
    std::vector<std::string> names;
    for (const SystemInfo& info : all_systems()) {
        const bool proposed = info.name.starts_with("moe-hub") || info.name.starts_with("mh-") ||
                              info.name.starts_with("dysharp") || info.name.ends_with("-only") ||
                              info.name == "dualpipe";
        if (info.name != "ideal" && !proposed) names.push_back(info.name);
    }
    return names;
}

Gain explain_gain(const LayerInput& input, const SystemSpec& system, const SystemSpec& published,
                  const GainOptions& options) {
    const SystemSpec baseline = options.fp8 ? with_software(published, {{}, {}, true}) : published;
    const auto step = [](const char* name, SystemSpec spec) {
        return GainStep{name, spec.name, std::move(spec)};
    };
    std::vector<GainStep> runs = {
        step("published", baseline),
        step("host", with_software(baseline, {HostMode::graph, {}, {}})),
        step("activation", with_software(baseline, equal_software(options))),
        step("hub", with_software(system, equal_software(options))),
        step("ideal", with_software(load_system("ideal"), equal_software(options))),
    };
    const std::size_t fixed = runs.size();
    for (SystemSpec& one : candidates(input, options)) runs.push_back(step("overlap", one));
    for (const GainStep& run : runs) check_layer(input, run.spec, options.layer);
    run_parallel(runs.size(),
                 [&](std::size_t i) {
                     runs[i].time = simulate_layer(input, runs[i].spec, options.layer).time;
                 },
                 {options.threads, {}});
    const auto best =
        std::min_element(runs.begin() + static_cast<std::ptrdiff_t>(fixed), runs.end(),
                         [](const GainStep& a, const GainStep& b) { return a.time < b.time; });
    Gain gain;
    gain.steps = {runs[0], runs[1], runs[2]};
    if (best != runs.end()) gain.steps.push_back(*best);
    gain.steps.push_back(runs[3]);
    gain.ideal = runs[4].time;
    return gain;
}

}  // namespace moehub
