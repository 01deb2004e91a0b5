#include "cli/commands.hpp"
#include "cli/sweep_command.hpp"
#include "request/point_arguments.hpp"

#include <memory>

namespace moehub {

Command sweep_command() {
    const auto request = std::make_shared<SweepArguments>();
    std::vector<Option> options{
        {"study", &request->study, "a TOML file that says what is swept; without it --sweep does",
         "STUDY.toml"},
        {"--kind", &request->kind,
         "what is simulated: a MoE layer, a tensor-parallel sub-layer, a whole model; without it "
         "layer",
         "layer|tp|model"},
        {"--systems", &request->systems,
         "names or TOML files with commas between; without it ideal,megatron-te,moe-hub, of dense "
         "models and tp ideal,tp-nvls,cais",
         "A,B"},
        {"--baseline", &request->baseline,
         "whose times others are measured by; without it megatron-te or tp-nvls", "S"},
    };
    add_sweep_options(options, *request);
    options.push_back({"--dry-run", &request->dry_run, "check all, list the points, run none"});
    options.push_back({"--shard", &request->shard,
                       "only the I-th of N parts, I from 1 to N; moehub merge joins them", "I/N"});
    for (Option& option : point_options(request->model)) options.push_back(std::move(option));
    options.push_back({"--set", &request->model.layer.settings,
                       "the same for all points: a machine's value, as model.KEY a model's, as "
                       "system.NAME.KEY a system's; repeatable",
                       "KEY=VALUE"});
    options.push_back({"--seed", &request->model.layer.seed, "a single one", "N"});
    options.push_back({"--json", &request->model.layer.json, "print JSON; times in µs"});
    add_html_option(options, request->model.layer.html);
    options.push_back({"-o,--output", &request->model.layer.output,
                       "database of the results, gone on with where it exists; without it the "
                       "study's name and .sqlite",
                       "FILE"});
    options.push_back({"--threads", &request->threads,
                       "points simulated at a time, same results; without it as many as cores",
                       "N"});
    return {
        "sweep",
        "Simulate many settings × seeds × systems over all cores, into a database; goes on where "
        "it was stopped",
        std::move(options),
        "Example:\n  moehub sweep --sweep link.latency=100ns,250ns,1us --seeds 3 --csv "
        "latency.csv\n"
        "  moehub sweep --sweep tokens=1024..65536*4 --sweep routing=uniform,normal:0.032\n"
        "  moehub sweep examples/studies/rat_entries.toml --dry-run\n"
        "  mpirun -n 4 moehub sweep STUDY.toml",
        [request] { run_sweep_command(*request); },
    };
}

}  // namespace moehub
