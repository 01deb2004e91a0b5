#include "cli/place_arguments.hpp"

#include <moehub/expert_layout.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

/// An option with one value.
template <class Value>
CLI::Option* add(CLI::App& command, const std::string& name, Value& value, const std::string& help,
                 const std::string& type) {
    CLI::Option* const option = command.add_option(name, value, help)->type_name(type);
    if constexpr (std::is_same_v<Value, std::string>)
        if (!value.empty()) option->capture_default_str();
    return option;
}

std::string method_names() {
    std::vector<std::string> names;
    for (const PlaceMethod& method : place_methods()) names.push_back(method.name);
    return fmt::format("{}", fmt::join(names, ", "));
}

void add_profiles(CLI::App& command, PlaceArguments& arguments) {
    add(command, "--profile", arguments.profiles.files,
        "recorded routing, FILE[:from-to][@weight]: a part as fractions of its tokens, a weight "
        "beside others; repeatable",
        "FILE");
    add(command, "--evaluate", arguments.evaluate,
        "tokens to judge the layout by, held out from the search; repeatable", "FILE");
    add_profile_options(command, arguments.profiles);
    add(command, "--dense-layers", arguments.dense_layers,
        "layers of the model before the first recorded one, where neither file nor --model says",
        "N")
        ->excludes(command.get_option("--model"));
}

void add_machine(CLI::App& command, PlaceArguments& arguments) {
    add(command, "--machine", arguments.machine, "preset or TOML file (moehub list machines)", "M");
    add(command, "--gpus", arguments.gpus, "that share the experts", "N");
    add(command, "--nodes", arguments.nodes,
        "of as many GPUs each; without it by the GPUs that one node of the machine has", "K");
    add(command, "--groups", arguments.groups, "of experts, for eplb over several nodes", "Q");
    add(command, "--replicas", arguments.replicas, "slots of a layer beyond one per expert", "R");
    add(command, "--memory", arguments.memory,
        "of a GPU for experts; needs --model; without it all that the machine's GPU has", "SIZE");
    add(command, "--weight-bits", arguments.weight_bits, "of an expert's weights, for --memory",
        "N");
}

void add_search(CLI::App& command, PlaceArguments& arguments) {
    add(command, "--method", arguments.method, method_names(), "NAME");
    add(command, "--objective", arguments.objective,
        "what is minimised, as gpus+4*transitions: load, gpus, nodes, transitions, "
        "node-transitions, pair, activated, moved; without it gpus, over nodes gpus+4*nodes, of "
        "counts load",
        "TEXT");
    add(command, "--load-cap", arguments.load_cap,
        "busiest GPU over the mean, at most, in every layer; 0: none", "X");
    add(command, "--load-blocks", arguments.load_blocks,
        "the cap holds in each of so many runs of the tokens; a balance found so lasts longer",
        "N");
    command
        .add_flag("--worst-profile", arguments.worst_profile,
                  "minimise for the worst profile, not the mean")
        ->disable_flag_override();
    command
        .add_flag("--unequal", arguments.unequal,
                  "moetuner: GPUs may differ in how many experts they hold")
        ->disable_flag_override();
    add(command, "--batch", arguments.batch, "tokens of a decode step, for activated experts", "N");
    add(command, "--current", arguments.current, "layout in use, any format, to move few from",
        "FILE");
    add(command, "--max-moves", arguments.max_moves,
        "experts to copy from the current layout, at most", "N");
    add(command, "--time-limit", arguments.time_limit, "of the search, in seconds", "S");
    add(command, "--seed", arguments.seed, "of the search", "N");
    add(command, "--threads", arguments.threads, "same result; without it as many as cores", "N");
}

void add_outputs(CLI::App& command, PlaceArguments& arguments) {
    command
        .add_flag("--pareto", arguments.pareto,
                  "also try other objectives and caps, in half of the time; print those of which "
                  "none is better in everything")
        ->disable_flag_override();
    add(command, "--simulate", arguments.simulate,
        "systems to simulate with and without the layout (moehub list systems); needs --model; "
        "commas between, or repeated",
        "SYSTEM");
    add(command, "--format", arguments.format,
        fmt::format("of the file: {}; without it by its ending, .csv, .yaml (trtllm), else sglang",
                    fmt::join(layout_formats(), ", ")),
        "F");
    add(command, "-o,--output", arguments.output, "write the layout to this file", "FILE");
    command.add_flag("--json", arguments.json, "print the report as JSON")->disable_flag_override();
}

}  // namespace

void add_place_options(CLI::App& command, PlaceArguments& arguments) {
    add_profiles(command, arguments);
    add_machine(command, arguments);
    add_search(command, arguments);
    add_outputs(command, arguments);
}

}  // namespace moehub
