// The options of layers as rows.
#include "answers/layer_request.hpp"
#include "study/collective_names.hpp"

#include <filesystem>

namespace moehub {
namespace {

bool is_file(const std::string& routing) {
    const std::string path = routing.substr(0, routing.find_first_of(":@"));
    const auto ends = [&](const char* ending) {
        return path.ends_with(ending) || routing.ends_with(ending);
    };
    std::error_code absent;
    return routing.find('/') != std::string::npos || ends(".npy") || ends(".pt") || ends(".csv") ||
           ends(".jsonl") || ends(".safetensors") || std::filesystem::is_directory(path, absent);
}

Target to(std::optional<WantedRouting>& routing) {
    Target target;
    target.kind = ValueKind::routing;
    target.read = [&routing](std::string_view option, const std::string& text) {
        routing = WantedRouting{};
        if (is_file(text)) {
            routing->file = text;
            return;
        }
        try {
            routing->drawn = parse_routing(text);
        } catch (const InputError& error) {
            bad_input("{}: {}", option, error.what());
        }
    };
    target.give = [&routing](const HeldNoun& given) {
        routing = WantedRouting{};
        routing->given = std::get<Held<NamedRouting>>(given);
    };
    return target;
}

using SubLayers = std::vector<SubLayer>;

Named<SubLayers> sub_layers() {
    Named<SubLayers> names;
    for (const std::string& name : sub_layer_names())
        names.emplace_back(name, SubLayers{*sub_layer_named(name)});
    names.emplace_back("all", SubLayers{SubLayer::l1, SubLayer::l2, SubLayer::l3, SubLayer::l4});
    return names;
}

const OptionRules kOfExperts = in_forms(kExperts);
const OptionRules kWithExperts = in_forms(kExperts | kServed);

}  // namespace

Options machine_options(LayerRequest& request, const std::string& usual_machine,
                        const std::string& usual_model) {
    return {
        {"--machine", to(request.machine),
         "preset or TOML file (moehub list machines); without it " + usual_machine},
        {"--model", to(request.model),
         "preset or TOML file (moehub list models); without it " + usual_model},
        {"--gpus", to(request.gpus, at_least(1)), "how many take part; without it all"},
        {"--set", to(request.settings, {"machine", "model", "system"}),
         "change a machine's value; as model.KEY a model's, as system.NAME.KEY a system's; "
         "repeatable"},
    };
}

Options token_options(LayerRequest& request, const std::string& usual) {
    return {
        {"--tokens", to(request.tokens, {1, kMostTokens}), "over all GPUs; without it " + usual,
         in_forms(kExperts | kDense)},
        {"--tokens-per-gpu", to(request.tokens_per_gpu, {1, kMostTokens}),
         "of each GPU, instead of --tokens", excludes({"--tokens"}, kExperts | kDense)},
    };
}

Options routing_options(LayerRequest& request) {
    return {
        {"--routing", to(request.routing),
         "uniform, normal:STD, zipf:S, lognormal:SIGMA, balanced, or a trace, FILE.npy or any "
         "recording of tokens that moehub place reads; without it uniform",
         kWithExperts},
        {"--seed", to(request.seed), "of a generated routing; without it 1", kWithExperts},
        {"--layer", to(request.layer, at_least(0)),
         "MoE layer of a trace, of generated layers, of --layout, from 0; without it 0, in model "
         "with --layout the one nearest to the mean of all",
         kWithExperts},
        {"--layout", to(request.layout),
         "where experts stand: a file that moehub place writes or reads (SGLang, vLLM, "
         "vllm-ascend, TensorRT-LLM, CSV, JSON); without it in order",
         kWithExperts},
    };
}

Options layer_options(LayerRequest& request) {
    LayerOptions& options = request.options;
    Options all = routing_options(request);
    append(all, {
                    {"--tp", to(request.tensor_parallel, at_least(1)),
                     "tensor parallel: GPUs that share each expert", kWithExperts},
                    {"--replicas", to(request.replicas, at_least(0)),
                     "redundant copies of busy experts; without it none", kWithExperts},
                    {"--replica-policy",
                     to(request.replica_policy,
                        Named<ReplicaPolicy>{{"round-robin", ReplicaPolicy::round_robin},
                                             {"least-loaded", ReplicaPolicy::least_loaded}}),
                     "which copy a row goes to; without it round-robin", kOfExperts},
                    {"--region-rows", to(options.region_rows, {1, kMostTokens}),
                     "rows of an expert's region; without it room for every token", kOfExperts},
                    {"--page-rows", to(options.page_rows, {1, kMostTokens}),
                     "regions grow by pages of so many rows; without it all at once", kOfExperts},
                    {"--page-pool", to_size(options.page_pool),
                     "memory of a GPU for its pages, as 256MiB; without it no limit",
                     needs("--page-rows", kExperts)},
                    {"--grain", to(options.grain, named({Grain::packet, Grain::row})),
                     "packet: every packet by itself; row: as trains, faster"},
                    {"--verify", to(options.verify),
                     "carry numbers, compare outputs with a plain reference layer",
                     in_forms(kExperts | kDense)},
                });
    for (Option& option : all)
        if (option.target.usual == "0") option.target.usual.clear();  // nothing is set
    return all;
}

Option pass_option(LayerRequest& request) {
    return {"--pass",
            to(request.options.pass,
               Named<Pass>{{"forward", Pass::forward}, {"backward", Pass::backward}}),
            "forward, or backward through the layer in training", kOfExperts};
}

Option baseline_option(LayerRequest& request) {
    return {"--baseline", to_text(request.baseline, "S"),
            "the system that others are measured by, one of those compared; without it "
            "megatron-te, for tensor parallelism tp-nvls, where it runs, else the slowest",
            in_forms(kExperts | kDense)};
}

Options software_options(LayerRequest& request) {
    Software& software = request.software;
    return {
        {"--host",
         to(software.host, Named<HostMode>{{"eager", HostMode::eager}, {"graph", HostMode::graph}}),
         "of every system: eager issues operators one by one, graph sends off all; without it "
         "each system's own",
         kOfExperts},
        {"--fused-activation", to(software.fused_activation),
         "in every system: no kernel between the experts' GEMMs", kOfExperts},
        {"--fp8", to(software.fp8),
         "in every system: experts compute in FP8, and rows go to them in FP8", kOfExperts},
    };
}

Option sub_layer_option(LayerRequest& request) {
    return {"--sublayer", to(request.sub_layers, sub_layers()),
            "with --layer-type tp: L1, L2 (forward), L3, L4 (backward), attention-out, "
            "attention-in, all: L1 to L4; without it L1",
            in_forms(kDense)};
}

}  // namespace moehub
