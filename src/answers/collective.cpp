// One collective on a machine's fabric: time, bandwidth, traffic.
#include "answers/question.hpp"
#include "report/number.hpp"
#include "study/collective_names.hpp"

#include <moehub/collective.hpp>

#include <chrono>

#include <fmt/format.h>

namespace moehub {
namespace {

using Op = Collective::Op;
using Algorithm = Collective::Algorithm;
using Element = Collective::Element;

struct Request {
    Op op = Op::all_to_all;
    std::optional<Algorithm> algorithm;
    Element element = Element::half;
    Wanted<Machine> machine{"dgx-h100"};
    std::optional<int> gpus;
    Bytes bytes = Bytes{1} << 30;
    Grain grain = Grain::row;
    Settings settings;
};

Options options_of(Request& request) {
    return {
        {"--op",
         to(request.op,
            named({Op::all_to_all, Op::all_gather, Op::reduce_scatter, Op::all_reduce})),
         "what everyone gets of everyone"},
        {"--algorithm",
         to(request.algorithm,
            named({Algorithm::direct, Algorithm::ring, Algorithm::nvls, Algorithm::automatic,
                   Algorithm::one_shot, Algorithm::nvls_tree, Algorithm::collnet})),
         "direct, ring, nvls, auto (as NCCL chooses by size), one-shot (TensorRT-LLM's "
         "all_reduce), nvls-tree or collnet (all_reduce between nodes: trees, SHARP); without "
         "it all_to_all goes direct, others ring"},
        {"--element", to(request.element, named({Element::half, Element::int8})),
         "what is summed; auto adds up in switches half only"},
        {"--machine", to(request.machine), "preset or TOML file (moehub list machines)"},
        {"--gpus", to(request.gpus, at_least(2)), "how many take part; without it all"},
        {"--bytes", to_size(request.bytes),
         "nccl-tests' size: 8589934592, 8G (1024-based), 64MiB, \"64 MB\""},
        {"--grain", to(request.grain, named({Grain::packet, Grain::row})),
         "packet: every packet by itself; row: as trains, faster"},
        {"--set", to(request.settings, {"machine"}),
         "change a machine's value, repeatable: --set link.latency=\"300 ns\""},
    };
}

Collective collective_of(const Request& request, int gpus) {
    Collective what;
    what.op = request.op;
    what.algorithm = request.algorithm.value_or(request.op == Op::all_to_all ? Algorithm::direct
                                                                             : Algorithm::ring);
    what.element = request.element;
    if (what.element != Element::half && what.algorithm != Algorithm::automatic)
        throw InputError("--element: only --algorithm auto asks what is added up");
    what.grain = request.grain;
    what.bytes = request.bytes;
    what.gpus = gpus;
    return what;
}

std::string traffic(Bytes bytes, int gpus) {
    const auto total = static_cast<double>(bytes);
    return fmt::format("{} ({} per GPU)", byte_size(total), byte_size(total / gpus));
}

Answer answer_of(const Request& request, const Asker& asker) {
    Machine machine = machine_of(request.machine, request.settings);
    if (request.gpus) machine = with_gpus(machine, *request.gpus);
    const Collective what = collective_of(request, machine.gpus());
    const std::string name = request.machine.name_or("");
    const auto settings = settings_of(request.settings, request.machine);
    asker.loaded([&] { return to_toml(machine); });

    const auto start = std::chrono::steady_clock::now();
    const CollectiveResult result = run_collective(machine, what);
    const double wall =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const double algorithm_bandwidth = static_cast<double>(what.bytes) / to_seconds(result.time);

    constexpr Show kRate{Show::Form::rate};
    Answer answer{.title = fmt::format("{} on {}", name_of(what.op), name)};
    answer.lead = {fmt::format("{} ({}) of {} on {}, {} GPUs, {} grain{}", name_of(what.op),
                               name_of(what.algorithm), byte_size(static_cast<double>(what.bytes)),
                               name, what.gpus, name_of(what.grain), with_settings(settings))};
    answer.facts["set"] = settings;
    answer.sections = {
        {"One call",
         {},
         {Facts{{
             {hidden("machine"), name},
             {hidden("op"), name_of(what.op)},
             {hidden("algorithm"), name_of(what.algorithm)},
             {hidden("element"), name_of(what.element)},
             {hidden("gpus"), what.gpus},
             {hidden("bytes"), what.bytes},
             {hidden("grain"), name_of(what.grain)},
             {{"as NCCL chooses", "chosen"}, or_null(result.chosen)},
             {{"counted from", "simulated_part"}, or_null(result.part)},
             {{"time", "time_us", scaled(kDuration, 1e-6)}, to_us(result.time)},
             {{"bus bandwidth", "bus_bandwidth_bytes_per_second", kRate}, result.bus_bandwidth},
             {{"algorithm bandwidth", "algorithm_bandwidth_bytes_per_second", kRate},
              algorithm_bandwidth},
             {hidden("traffic_bytes.up"), result.bytes_up},
             {hidden("traffic_bytes.down"), result.bytes_down},
             {{"traffic up"}, traffic(result.bytes_up, what.gpus)},
             {{"traffic down"}, traffic(result.bytes_down, what.gpus)},
             {{"packets", "packets", kWhole}, result.packets},
             {{"events", "events", kWhole}, result.events},
             {{"wall time", "wall_seconds", kDuration}, wall},
             {{"simulated"},
              fmt::format("{} million packets/s",
                          significant(static_cast<double>(result.packets) / wall / 1e6))},
         }}}}};
    add_configuration(answer.configuration, "Machine", machine);
    return answer;
}

}  // namespace

Question collective_question() {
    return {.first = "op",
            .sweeps = {{.name = "collective",
                        .measures = {{"time_us"},
                                     {"bus_bandwidth_bytes_per_second"},
                                     {"algorithm_bandwidth_bytes_per_second"},
                                     {"traffic_bytes.up", true},
                                     {"traffic_bytes.down", true},
                                     {"packets", true}}}},
            .ask = asking(options_of, answer_of)};
}

}  // namespace moehub
