/// Where a system's lead over a baseline comes from, step by step: the baseline as published, then
/// with a graph instead of an eager host, then with a fused activation, then the best of today's
/// software that overlaps, with the same, then the system itself.
///
///     const Gain gain = explain_gain({machine, model, routing, placement},
///                                    load_system("moe-hub"), load_system("megatron-te"));
///     for (const GainStep& step : gain.steps) fmt::print("{} {}\n", step.name, step.time);
#pragma once
#include <moehub/layer.hpp>

#include <functional>
#include <string>
#include <vector>

namespace moehub {

struct GainOptions {
    LayerOptions layer;
    bool fp8 = false;                ///< the system and the baseline with FP8 experts and rows
    std::vector<SystemSpec> todays;  ///< what "the best of today's software" is among; those that
                                     ///< cannot run this are passed over
    int threads = 0;                 ///< simulations at a time; 0: as many as there are cores
};
/// Names of all presets but the bound and the proposals.
std::vector<std::string> todays_systems();

struct GainStep {
    std::string name;    ///< "published", "host", "activation", "overlap" (where something of
                         ///< today's runs), "hub"
    std::string system;  ///< name of the system that runs
    SystemSpec spec;     ///< the system that runs, with its software
    Ps time = 0;
};

struct Gain {
    std::vector<GainStep> steps;  ///< the first is the baseline, the last the system
    Ps ideal = 0;                 ///< time of the bound with the system's software
};

/// Explains any system, also one of the user's own (program.hpp). Throws as simulate_layer() does
/// when the baseline or the system cannot run this.
Gain explain_gain(const LayerInput& input, const SystemSpec& system, const SystemSpec& baseline,
                  const GainOptions& options = {});

}  // namespace moehub
