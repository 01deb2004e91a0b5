#include "request/place_arguments.hpp"

#include <moehub/expert_layout.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

std::string method_names() {
    std::vector<std::string> names;
    for (const PlaceMethod& method : place_methods()) names.push_back(method.name);
    return fmt::format("{}", fmt::join(names, ", "));
}

std::vector<Option> of_profiles(PlaceArguments& arguments) {
    std::vector<Option> options{
        {"dumps",
         &arguments.profiles.ranks,
         "recorded routing; several are what the ranks of a server dumped of one recording, a file "
         "each, and make one profile",
         "FILE",
         {.many = true}},
        {"--profile",
         &arguments.profiles.files,
         "recorded routing, FILE[:from-to][@weight]: a part as fractions of its tokens, a weight "
         "beside others; every file is a profile; repeatable",
         "FILE",
         {.many = true}},
        {"--evaluate",
         &arguments.evaluate,
         "tokens to judge the layout by, held out from the search; repeatable",
         "FILE",
         {.many = true}},
    };
    add_profile_options(options, arguments.profiles);
    options.push_back(
        {"--dense-layers",
         &arguments.dense_layers,
         "layers of the model before the first recorded one, where neither file nor --model says",
         "N",
         {.excludes = {"--model"}}});
    return options;
}

std::vector<Option> of_machine(PlaceArguments& arguments) {
    return {
        {"--machine", &arguments.machine, "preset or TOML file (moehub list machines)", "M"},
        {"--gpus", &arguments.gpus, "that share the experts", "N"},
        {"--nodes", &arguments.nodes,
         "of as many GPUs each; without it by the GPUs that one node of the machine has", "K"},
        {"--groups", &arguments.groups, "of experts, for eplb over several nodes", "Q"},
        {"--replicas", &arguments.replicas, "slots of a layer beyond one per expert", "R"},
        {"--memory", &arguments.memory,
         "of a GPU for experts; needs --model; without it all that the machine's GPU has", "SIZE"},
        {"--weight-bits", &arguments.weight_bits, "of an expert's weights, for --memory", "N"},
    };
}

std::vector<Option> of_search(PlaceArguments& arguments) {
    return {
        {"--method", &arguments.method, method_names(), "NAME"},
        {"--objective", &arguments.objective,
         "what is minimised, as gpus+4*transitions: load, gpus, nodes, transitions, "
         "node-transitions, pair, activated, moved; without it gpus, over nodes gpus+4*nodes, of "
         "counts load",
         "TEXT"},
        {"--load-cap", &arguments.load_cap,
         "busiest GPU over the mean, at most, in every layer; 0: none", "X"},
        {"--load-blocks", &arguments.load_blocks,
         "the cap holds in each of so many runs of the tokens; a balance found so lasts longer",
         "N"},
        {"--worst-profile", &arguments.worst_profile,
         "minimise for the worst profile, not the mean"},
        {"--unequal", &arguments.unequal,
         "moetuner: GPUs may differ in how many experts they hold"},
        {"--batch", &arguments.batch, "tokens of a decode step, for activated experts", "N"},
        {"--current", &arguments.current, "layout in use, any format, to move few from", "FILE"},
        {"--max-moves", &arguments.max_moves, "experts to copy from the current layout, at most",
         "N"},
        {"--time-limit", &arguments.time_limit, "of the search, in seconds", "S"},
        {"--seed", &arguments.seed, "of the search", "N"},
        {"--threads", &arguments.threads, "same result; without it as many as cores", "N"},
    };
}

std::vector<Option> of_outputs(PlaceArguments& arguments) {
    return {
        {"--pareto", &arguments.pareto,
         "also try other objectives and caps, in half of the time; print those of which none is "
         "better in everything"},
        {"--system", &arguments.system,
         "that the layout is for (moehub list systems): what it gains in time over EPLB with the "
         "same slots; where that or another layout is faster, it is taken; needs --model",
         "S"},
        {"--simulate",
         &arguments.simulate,
         "further systems to simulate with and without the layout; without --system the first "
         "decides; commas between, or repeated",
         "SYSTEM",
         {.many = true}},
        {"--format",
         &arguments.format,
         fmt::format("of the file: {}; without it by its ending, .csv, .yaml (trtllm), else sglang",
                     fmt::join(layout_formats(), ", ")),
         "F",
         {},
         layout_formats()},
        {"-o,--output", &arguments.output, "write the layout to this file", "FILE"},
        {"--json", &arguments.json, "print the report as JSON"},
    };
}

}  // namespace

std::vector<Option> place_options(PlaceArguments& arguments) {
    std::vector<Option> all;
    for (const auto& part : {of_profiles(arguments), of_machine(arguments), of_search(arguments),
                             of_outputs(arguments)})
        all.insert(all.end(), part.begin(), part.end());
    add_html_option(all, arguments.html);
    return all;
}

}  // namespace moehub
