#include "request/layer_arguments.hpp"

namespace moehub {

void add_layer_type_options(std::vector<Option>& options, LayerArguments& arguments) {
    options.push_back(
        {"--layer-type", &arguments.layer_type,
         "moe: a MoE layer; tp: a tensor-parallel sub-layer of a transformer; without "
         "it moe",
         "moe|tp"});
    options.push_back({"--sublayer",
                       &arguments.sub_layer,
                       "with --layer-type tp: L1, L2 (forward), L3, L4 (backward), attention-out, "
                       "attention-in, in compare also all: L1 to L4; without it L1",
                       "L",
                       {},
                       {"L1", "L2", "L3", "L4", "attention-out", "attention-in", "all"}});
}

void add_layer_options(std::vector<Option>& options, LayerArguments& arguments) {
    const std::vector<Option> layer{
        {"--machine", &arguments.machine,
         "preset or TOML file (moehub list machines); without it dgx-h800, for tensor parallelism "
         "dgx-h100",
         "M"},
        {"--model", &arguments.model,
         "preset or TOML file (moehub list models); without it mixtral-8x7b, of --layer-type tp "
         "llama-7b",
         "M"},
        {"--gpus", &arguments.gpus, "how many take part; without it all", "N"},
        {"--set", &arguments.settings,
         "change a machine's value; as model.KEY a model's, as system.NAME.KEY a system's; "
         "repeatable",
         "KEY=VALUE"},
        {"--routing", &arguments.routing,
         "uniform, normal:STD, zipf:S, lognormal:SIGMA, balanced, or a trace, FILE.npy or any "
         "recording "
         "of tokens that moehub place reads; without it uniform",
         "R"},
        {"--seed", &arguments.seed, "of a generated routing; without it 1", "N"},
        {"--layer", &arguments.layer,
         "MoE layer of a trace, of generated layers, of --layout, from 0; without it 0, in model "
         "with --layout the one nearest to the mean of all",
         "N"},
        {"--tp", &arguments.tensor_parallel,
         "tensor parallel: GPUs that share each expert; without it 1", "N"},
        {"--layout", &arguments.layout,
         "where experts stand: a file that moehub place writes or reads (SGLang, vLLM, "
         "vllm-ascend, TensorRT-LLM, CSV, JSON); without it in order",
         "FILE"},
        {"--replicas", &arguments.replicas, "redundant copies of busy experts; without it none",
         "N"},
        {"--replica-policy",
         &arguments.replica_policy,
         "which copy a row goes to: round-robin, least-loaded; without it round-robin",
         "P",
         {},
         {"round-robin", "least-loaded"}},
        {"--region-rows", &arguments.region_rows,
         "rows of an expert's region; without it room for every token", "N"},
        {"--page-rows", &arguments.page_rows,
         "regions grow by pages of so many rows; without it all at once", "N"},
        {"--page-pool",
         &arguments.page_pool,
         "memory of a GPU for its pages, as 256MiB; without it no limit",
         "BYTES",
         {.needs = "--page-rows"}},
        {"--grain", &arguments.grain, "packet: every packet by itself; row: as trains, faster",
         "packet|row"},
        {"--verify", &arguments.verify,
         "carry numbers, compare outputs with a plain reference layer"},
        {"--json", &arguments.json, "print JSON; times in µs, sizes in bytes"},
        {"-o,--output", &arguments.output, "write to this file instead", "FILE"},
    };
    options.insert(options.end(), layer.begin(), layer.end());
    add_token_options(options, arguments,
                      "8192, or all of a trace, or for tensor parallelism the model's batch");
    add_html_option(options, arguments.html);
}

void add_token_options(std::vector<Option>& options, LayerArguments& arguments,
                       const std::string& usual) {
    options.push_back({"--tokens", &arguments.tokens, "over all GPUs; without it " + usual, "N"});
    options.push_back({"--tokens-per-gpu",
                       &arguments.tokens_per_gpu,
                       "of each GPU, instead of --tokens",
                       "N",
                       {.excludes = {"--tokens"}}});
}

Option baseline_option(std::string& baseline) {
    return {"--baseline", &baseline,
            "the system that others are measured by, one of those compared; without it "
            "megatron-te, for tensor parallelism tp-nvls, where it runs, else the slowest",
            "S"};
}

void add_software_options(std::vector<Option>& options, LayerArguments& arguments) {
    options.push_back({"--host", &arguments.host,
                       "of every system: eager issues operators one by one, graph sends off all; "
                       "without it each system's own",
                       "eager|graph"});
    options.push_back({"--fused-activation", &arguments.fused_activation,
                       "in every system: no kernel between the experts' GEMMs"});
    options.push_back({"--fp8", &arguments.fp8,
                       "in every system: experts compute in FP8, and rows go to them in FP8"});
}

void add_pass_option(std::vector<Option>& options, LayerArguments& arguments) {
    options.push_back({"--pass", &arguments.pass,

                       "forward, or backward through the layer in training; without it forward",
                       "forward|backward"});
}

}  // namespace moehub
