#include "cli/layer_arguments.hpp"

namespace moehub {
namespace {

void add_sizes(CLI::App& command, LayerArguments& arguments) {
    command
        .add_option("--machine", arguments.machine, "preset or TOML file (moehub list machines)")
        ->type_name("M")
        ->capture_default_str();
    command.add_option("--model", arguments.model, "preset or TOML file (moehub list models)")
        ->type_name("M")
        ->capture_default_str();
    command.add_option("--gpus", arguments.gpus, "how many take part; without it all")
        ->type_name("N");
    command
        .add_option("--tokens", arguments.tokens,
                    "over all GPUs; without it 8192, or all of a trace")
        ->type_name("N");
    command
        .add_option("--set", arguments.settings,
                    "change a machine's value; as model.KEY a model's, as system.NAME.KEY a "
                    "system's; repeatable")
        ->type_name("KEY=VALUE")
        ->allow_extra_args(false);
}

void add_routing(CLI::App& command, LayerArguments& arguments) {
    command
        .add_option("--routing", arguments.routing,
                    "uniform, normal:STD, zipf:S, lognormal:SIGMA, balanced, or a trace, FILE.npy")
        ->type_name("R")
        ->capture_default_str();
    command.add_option("--seed", arguments.seed, "of a generated routing; without it 1")
        ->type_name("N");
    command
        .add_option("--layer", arguments.layer,
                    "of a trace or of generated layers, from 0; without it 0")
        ->type_name("N");
}

void add_placement(CLI::App& command, LayerArguments& arguments) {
    command
        .add_option("--tp", arguments.tensor_parallel,
                    "tensor parallel: GPUs that share each expert")
        ->type_name("N")
        ->capture_default_str();
    auto* const replicas =
        command.add_option("--replicas", arguments.replicas, "redundant copies of busy experts")
            ->type_name("N")
            ->capture_default_str();
    command
        .add_option("--replica-policy", arguments.replica_policy,
                    "which copy a row goes to: round-robin, least-loaded")
        ->type_name("P")
        ->capture_default_str()
        ->needs(replicas);
    command
        .add_option("--region-rows", arguments.region_rows,
                    "rows of an expert's region; without it room for every token")
        ->type_name("N");
    auto* const page_rows =
        command
            .add_option("--page-rows", arguments.page_rows,
                        "regions grow by pages of so many rows; without it all at once")
            ->type_name("N");
    command
        .add_option("--page-pool", arguments.page_pool,
                    "memory of a GPU for its pages, as 256MiB; without it no limit")
        ->type_name("BYTES")
        ->needs(page_rows);
}

}  // namespace

void add_layer_options(CLI::App& command, LayerArguments& arguments) {
    add_sizes(command, arguments);
    add_routing(command, arguments);
    add_placement(command, arguments);
    command
        .add_option("--grain", arguments.grain,
                    "packet: every packet by itself; row: as trains, faster")
        ->type_name("packet|row")
        ->capture_default_str();
    command
        .add_flag("--verify", arguments.verify,
                  "carry numbers, compare outputs with a plain reference layer")
        ->disable_flag_override();
    command.add_flag("--json", arguments.json, "print JSON; times in µs, sizes in bytes")
        ->disable_flag_override();
    command.add_option("-o,--output", arguments.output, "write to this file instead")
        ->type_name("FILE");
}

void add_pass_option(CLI::App& command, LayerArguments& arguments) {
    command
        .add_option("--pass", arguments.pass, "forward, or backward through the layer in training")
        ->type_name("forward|backward")
        ->capture_default_str();
}

}  // namespace moehub
