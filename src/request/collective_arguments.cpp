#include "request/collective_arguments.hpp"

#include "base/quantity.hpp"
#include "request/values.hpp"
#include "study/collective_names.hpp"

#include <moehub/error.hpp>
#include <moehub/presets.hpp>

#include <chrono>

#include <fmt/format.h>

namespace moehub {
namespace {

int gpus_of(const std::string& text) {
    std::int64_t gpus = 0;
    try {
        gpus = parse_count(text);
    } catch (const InputError&) {
        gpus = 0;
    }
    if (gpus < 2 || gpus > 1'000'000)
        throw InputError(
            fmt::format("--gpus: found {}, allowed: a whole number from 2 to the "
                        "machine's GPUs",
                        moehub::quoted(text)));
    return static_cast<int>(gpus);
}

Collective::Algorithm usual_algorithm(Collective::Op op) {
    return op == Collective::Op::all_to_all ? Collective::Algorithm::direct
                                            : Collective::Algorithm::ring;
}

}  // namespace

CollectiveRun run_collective(const CollectiveArguments& request, const Loaded<Machine>* given) {
    CollectiveRun run;
    auto& what = run.collective;
    what.op = named("--op", request.op, op_named(request.op), op_names());
    what.algorithm = request.algorithm.empty()
                         ? usual_algorithm(what.op)
                         : named("--algorithm", request.algorithm,
                                 algorithm_named(request.algorithm), algorithm_names());
    what.element =
        named("--element", request.element, element_named(request.element), element_names());
    if (what.element != Collective::Element::half &&
        what.algorithm != Collective::Algorithm::automatic)
        throw InputError("--element: only --algorithm auto asks what is added up");
    what.grain = named("--grain", request.grain, grain_named(request.grain), grain_names());
    what.bytes = size_of("--bytes", request.bytes);
    const int wanted = request.gpus ? gpus_of(*request.gpus) : 0;
    Machine machine =
        given != nullptr ? given->value : load_machine(request.machine, request.settings);
    if (wanted != 0) machine = with_gpus(machine, wanted);
    what.gpus = machine.gpus();

    const auto start = std::chrono::steady_clock::now();
    run.result = run_collective(machine, what);
    run.wall_seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return run;
}

double algorithm_bandwidth(const CollectiveRun& run) {
    return static_cast<double>(run.collective.bytes) / to_seconds(run.result.time);
}

Json collective_json(const CollectiveRun& run, const CollectiveArguments& request) {
    const auto& [what, result, wall_seconds] = run;
    Json json = {
        {"machine", request.machine},
        {"set", request.settings},
        {"op", name_of(what.op)},
        {"algorithm", name_of(what.algorithm)},
        {"element", name_of(what.element)},
        {"gpus", what.gpus},
        {"bytes", what.bytes},
        {"grain", name_of(what.grain)},
        {"time_us", to_us(result.time)},
        {"bus_bandwidth_bytes_per_second", result.bus_bandwidth},
        {"algorithm_bandwidth_bytes_per_second", algorithm_bandwidth(run)},
        {"traffic_bytes", {{"up", result.bytes_up}, {"down", result.bytes_down}}},
        {"packets", result.packets},
        {"events", result.events},
        {"wall_seconds", wall_seconds},
    };
    json["chosen"] = result.chosen.empty() ? Json(nullptr) : Json(result.chosen);
    json["simulated_part"] = result.part.empty() ? Json(nullptr) : Json(result.part);
    return json;
}

std::vector<Option> collective_options(CollectiveArguments& arguments) {
    return {
        {"--op",
         &arguments.op,
         "all_to_all, all_gather, reduce_scatter, all_reduce",
         "OP",
         {},
         {"all_to_all", "all_gather", "reduce_scatter", "all_reduce"}},
        {"--algorithm", &arguments.algorithm,
         "direct, ring, nvls, auto (as NCCL chooses by size), one-shot (TensorRT-LLM's "
         "all_reduce), nvls-tree or collnet (all_reduce between nodes: trees, SHARP); without "
         "it all_to_all goes direct, others ring",
         "NAME"},
        {"--element", &arguments.element, "what is summed; auto adds up in switches half only",
         "half|int8"},
        {"--machine", &arguments.machine, "preset or TOML file (moehub list machines)", "M"},
        {"--gpus", &arguments.gpus, "how many take part; without it all", "N"},
        {"--bytes", &arguments.bytes,
         "nccl-tests' size: 8589934592, 8G (1024-based), 64MiB, \"64 MB\"", "B"},
        {"--grain", &arguments.grain, "packet: every packet by itself; row: as trains, faster",
         "packet|row"},
        {"--set", &arguments.settings,
         "change a machine's value, repeatable: --set link.latency=\"300 ns\"", "KEY=VALUE"},
        {"--json", &arguments.json, "print JSON; all but wall_seconds is the same every time"},
        {"-o,--output", &arguments.output, "write to this file instead", "FILE"},
    };
}

}  // namespace moehub
