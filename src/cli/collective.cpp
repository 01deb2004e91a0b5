#include "base/json.hpp"
#include "base/quantity.hpp"
#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "report/document.hpp"
#include "report/table.hpp"
#include "request/values.hpp"
#include "study/collective_names.hpp"

#include <moehub/collective.hpp>
#include <moehub/error.hpp>
#include <moehub/presets.hpp>

#include <chrono>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

/// As typed; text, so that every mistake gets a message of ours.
struct Request {
    std::string op = "all_to_all";
    std::string algorithm;
    std::string machine = "dgx-h100";
    std::optional<std::string> gpus;
    std::string bytes = "1G";
    std::string element = "half";
    std::string grain = "row";
    std::vector<std::string> settings;
    bool json = false;
    std::string output;
};

struct Run {
    Collective collective;
    CollectiveResult result;
    double wall_seconds = 0;
};

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

Run run(const Request& request) {
    Run run;
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
    Machine machine = load_machine(request.machine, request.settings);
    if (wanted != 0) machine = with_gpus(machine, wanted);
    what.gpus = machine.gpus();

    const auto start = std::chrono::steady_clock::now();
    run.result = run_collective(machine, what);
    run.wall_seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return run;
}

/// Bytes/s: size over time.
double algorithm_bandwidth(const Run& run) {
    return static_cast<double>(run.collective.bytes) / to_seconds(run.result.time);
}

Json json_of(const Run& run, const Request& request) {
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

std::string table_text(const Run& run, const Request& request) {
    const auto& [what, result, wall_seconds] = run;
    const auto traffic = [gpus = what.gpus](Bytes bytes) {
        const auto total = static_cast<double>(bytes);
        return fmt::format("{} ({} per GPU)", byte_size(total), byte_size(total / gpus));
    };
    std::string out = fmt::format(
        "{} ({}) of {} on {}, {} GPUs, {} grain{}{}\n\n", name_of(what.op), name_of(what.algorithm),
        byte_size(static_cast<double>(what.bytes)), request.machine, what.gpus, name_of(what.grain),
        request.settings.empty() ? "" : ", with ", fmt::join(request.settings, ", "));
    const auto line = [&out](std::string_view name, const std::string& value) {
        out += fmt::format("  {:<20}{}\n", name, value);
    };
    if (!result.chosen.empty()) line("as NCCL chooses", result.chosen);
    if (!result.part.empty()) line("counted from", result.part);
    line("time", duration(to_seconds(result.time)));
    line("bus bandwidth", significant(result.bus_bandwidth / 1e9) + " GB/s");
    line("algorithm bandwidth", significant(algorithm_bandwidth(run) / 1e9) + " GB/s");
    line("traffic up", traffic(result.bytes_up));
    line("traffic down", traffic(result.bytes_down));
    line("packets", grouped(result.packets));
    line("events", grouped(result.events));
    line("wall time", duration(wall_seconds));
    if (wall_seconds > 0)
        line("simulated", significant(static_cast<double>(result.packets) / wall_seconds / 1e6) +
                              " million packets/s");
    return out;
}

}  // namespace

Command collective_command() {
    const auto request = std::make_shared<Request>();
    const auto execute = [request] {
        require_writable(request->output);
        const Run done = run(*request);
        put(request->json ? document_text("collective", json_of(done, *request))
                          : fitted(table_text(done, *request), style_for(request->output).width),
            request->output);
    };
    return {
        "collective",
        "Simulate one collective on a machine's fabric: time, bandwidth, traffic",
        {
            {"--op", &request->op, "all_to_all, all_gather, reduce_scatter, all_reduce", "OP"},
            {"--algorithm", &request->algorithm,
             "direct, ring, nvls, auto (as NCCL chooses by size), one-shot (TensorRT-LLM's "
             "all_reduce), nvls-tree or collnet (all_reduce between nodes: trees, SHARP); without "
             "it all_to_all goes direct, others ring",
             "NAME"},
            {"--element", &request->element, "what is summed; auto adds up in switches half only",
             "half|int8"},
            {"--machine", &request->machine, "preset or TOML file (moehub list machines)", "M"},
            {"--gpus", &request->gpus, "how many take part; without it all", "N"},
            {"--bytes", &request->bytes,
             "nccl-tests' size: 8589934592, 8G (1024-based), 64MiB, \"64 MB\"", "B"},
            {"--grain", &request->grain, "packet: every packet by itself; row: as trains, faster",
             "packet|row"},
            {"--set", &request->settings,
             "change a machine's value, repeatable: --set link.latency=\"300 ns\"", "KEY=VALUE"},
            {"--json", &request->json, "print JSON; all but wall_seconds is the same every time"},
            {"-o,--output", &request->output, "write to this file instead", "FILE"},
        },
        "Example:\n  moehub collective --op all_reduce --algorithm nvls --bytes 8G\n"
        "  moehub collective --op all_reduce --algorithm auto --bytes 4M",
        execute,
    };
}

}  // namespace moehub
