#include "base/nearest.hpp"
#include "base/quantity.hpp"
#include "study/compare.hpp"

#include <moehub/error.hpp>
#include <moehub/presets.hpp>
#include <moehub/tp.hpp>

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

bool has(const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

KindOfSystems moe_systems() {
    return {"MoE layers", all_systems};
}

KindOfSystems tp_systems() {
    return {"tensor-parallel sub-layers", all_tp_systems};
}

std::vector<std::string> names_of(const KindOfSystems& kind) {
    std::vector<std::string> names;
    for (const SystemInfo& system : kind.all()) names.push_back(system.name);
    return names;
}

void check_names(const std::vector<std::string>& systems, const KindOfSystems& kind,
                 const KindOfSystems& other) {
    const std::vector<std::string> known = names_of(kind);
    if (systems.empty())
        throw InputError(fmt::format("no system is named, allowed: {}", fmt::join(known, ", ")));
    for (auto name = systems.begin(); name != systems.end(); ++name) {
        const bool file = name->ends_with(".toml") || name->find('/') != name->npos;
        if (file)
            load_system(*name);
        else if (!has(known, *name) && has(names_of(other), *name))
            throw InputError(fmt::format("system {} runs {}, allowed for {}: {}",
                                         moehub::quoted(*name), other.words, kind.words,
                                         fmt::join(known, ", ")));
        else if (!has(known, *name))
            throw InputError(fmt::format("unknown system {}, allowed: {}{}", moehub::quoted(*name),
                                         fmt::join(known, ", "), did_you_mean(*name, known)));
        if (std::find(systems.begin(), name, *name) != name)
            throw InputError(fmt::format("system {} is named twice, allowed: once", quoted(*name)));
    }
}

void check_baseline(const std::string& baseline, const std::vector<SystemSpec>& systems) {
    if (baseline.empty()) return;
    std::vector<std::string> names;
    for (const SystemSpec& system : systems) names.push_back(system.name);
    if (!has(names, baseline))
        throw InputError(
            fmt::format("baseline: found {}, allowed: one of the systems compared: {}{}",
                        quoted(baseline), fmt::join(names, ", "), did_you_mean(baseline, names)));
}

void check_unlike(const std::vector<SystemSpec>& systems) {
    for (auto system = systems.begin(); system != systems.end(); ++system) {
        const bool twice = std::any_of(systems.begin(), system, [&](const SystemSpec& other) {
            return other.name == system->name;
        });
        if (twice)
            throw InputError(fmt::format("two systems are named {}, allowed: one of a name",
                                         moehub::quoted(system->name)));
    }
}

}  // namespace moehub
