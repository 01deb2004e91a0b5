// The table of all systems, and how each is run.
#include "systems/systems.hpp"

#include "base/nearest.hpp"
#include "systems/hub_layer.hpp"
#include "systems/megatron_te.hpp"
#include "systems/programs.hpp"

#include <moehub/error.hpp>

#include <fmt/format.h>

namespace moehub {
namespace {

using namespace systems;

using Run = LayerResult (*)(const LayerInput&, const LayerOptions&, std::string_view);

template <class Shared, class Spawn>
void run_on_all(Layer& layer, Shared& shared, Spawn spawn) {
    for (std::uint32_t gpu = 0; gpu < layer.gpus(); ++gpu) spawn(shared, static_cast<GpuId>(gpu));
    layer.fabric.run();
}

LayerResult run_ideal_with(const LayerInput& input, const LayerOptions& options,
                           std::string_view name, bool tiles_of_expected_rows) {
    Layer layer(input, options, {});
    Ideal ideal{layer, tiles_of_expected_rows};
    run_on_all(layer, ideal, spawn_ideal);
    layer.deliver_all_locally();
    layer.books.check();
    return layer.result(name);
}

LayerResult run_ideal(const LayerInput& input, const LayerOptions& options, std::string_view name) {
    const LayerResult own = run_ideal_with(input, options, name, false);
    const LayerResult expected = run_ideal_with(input, options, name, true);
    return own.time <= expected.time ? own : expected;
}

LayerResult run_megatron_te(const LayerInput& input, const LayerOptions& options,
                            std::string_view name) {
    Layer layer(input, options, {});
    MegatronTe megatron(layer);
    run_on_all(layer, megatron, spawn_megatron_te);
    layer.books.check();
    return layer.result(name);
}

template <sim::Queueing queueing, auto spawn>
LayerResult run_hub(const LayerInput& input, const LayerOptions& options, std::string_view name) {
    Layer layer(input, options, {queueing});
    HubLayer hub(layer);
    run_on_all(layer, hub, spawn);
    hub.close_books();
    layer.books.check();
    LayerResult result = layer.result(name);
    result.statistics = hub.statistics();
    return result;
}

struct System {
    const char* name;
    const char* title;
    const char* program;  ///< its file in src/systems
    Run run;
};

constexpr auto kFifo = sim::Queueing::shared_fifo;
constexpr auto kRpm = sim::Queueing::rpm;

constexpr System kSystems[] = {
    {"ideal", "no communication: routing, experts, scaling", "ideal.cpp", run_ideal},
    {"megatron-te", "Megatron-Core's all-to-all with Transformer Engine", "megatron_te.cpp",
     run_megatron_te},
    {"moe-hub", "the hub allocates, shapes packets and releases thread blocks", "moe_hub.cpp",
     run_hub<kRpm, spawn_moe_hub>},
    {"mh-base", "moe-hub without RPM and DAM", "mh_base.cpp", run_hub<kFifo, spawn_mh_base>},
    {"mh-pkt", "mh-base with the RPM", "mh_base.cpp", run_hub<kRpm, spawn_mh_base>},
    {"mh-dep", "mh-base with the DAM", "moe_hub.cpp", run_hub<kFifo, spawn_moe_hub>},
};

}  // namespace

std::vector<SystemInfo> all_systems() {
    std::vector<SystemInfo> list;
    for (const System& system : kSystems) {
        SystemInfo info;
        info.name = system.name;
        info.title = system.title;
        info.program = program_text(system.program);
        info.lines = lines_of_code(info.program);
        list.push_back(std::move(info));
    }
    return list;
}

LayerResult simulate_layer(const LayerInput& input, std::string_view name,
                           const LayerOptions& options) {
    std::vector<std::string> names;
    for (const System& system : kSystems) {
        if (system.name == name) return system.run(input, options, name);
        names.emplace_back(system.name);
    }
    throw InputError(fmt::format("unknown system \"{}\"{}", name, did_you_mean(name, names)));
}

}  // namespace moehub
