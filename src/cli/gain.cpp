#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "report/comparison.hpp"
#include "report/document.hpp"
#include "report/gain_report.hpp"
#include "report/progress.hpp"
#include "request/layer_arguments.hpp"
#include "request/values.hpp"

#include <moehub/compare.hpp>
#include <moehub/error.hpp>

#include <algorithm>
#include <memory>

namespace moehub {
namespace {

constexpr std::string_view kExplanation =
    "host: kernels follow one another in a graph; activation: fused into the first GEMM;\n"
    "overlap: from there to the best of today's software, with a graph and fused, too;\n"
    "hub: from there to the system. Below 0: a step that loses.\n"
    "published: over the baseline as it is published; equal: both with a graph and fused.\n";

struct Request {
    LayerArguments layer;
    std::string models = "mixtral-8x7b,phi-3.5-moe,qwen2-moe-2.7b-moehub,deepseek-v3";
    std::string system = "moe-hub";
    std::string baseline = "megatron-te";
};

/// The system, the baseline, and today's software, each once.
std::vector<std::string> names_of(const Request& request) {
    std::vector<std::string> names{request.system, request.baseline};
    for (const std::string& name : todays_systems())
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    return names;
}

std::vector<GainCase> explain(const Request& request) {
    const std::vector<std::string> models = listed(request.models);
    const std::vector<SystemSpec> systems = load_systems(request.layer, names_of(request));
    GainOptions options;
    options.todays.assign(systems.begin() + 1, systems.end());
    options.fp8 = request.layer.fp8;
    Progress progress("simulating");
    std::vector<GainCase> cases;
    for (const std::string& model : models) {
        LayerArguments arguments = request.layer;
        arguments.model = model;
        GainCase one{load_layer(arguments), {}};
        options.layer = one.layer.options;
        one.gain = explain_gain(one.layer.input(), systems[0], systems[1], options);
        cases.push_back(std::move(one));
        progress.update(cases.size(), models.size());
    }
    return cases;
}

void execute(const Request& request) {
    require_writable({output_file("-o", request.layer.output)});
    check_systems({request.system, request.baseline});
    const std::vector<GainCase> cases = explain(request);
    const TextStyle style = style_for(request.layer.output);
    std::string heads;
    for (const GainCase& one : cases) heads += head_text(one.layer);
    put(request.layer.json ? document_text("gain", gain_json(cases))
                           : fitted(heads + "\n" + gain_text(cases, style) + "\n" +
                                        gain_bars(cases, style) + "\n" + std::string(kExplanation),
                                    style.width),
        request.layer.output);
}

}  // namespace

Command gain_command() {
    const auto request = std::make_shared<Request>();
    std::vector<Option> options{
        {"--models", &request->models, "names or TOML files with commas between", "A,B"},
        {"--system", &request->system, "whose lead is explained", "S"},
        {"--baseline,--over", &request->baseline, "over whom", "S"},
        {"--machine", &request->layer.machine,
         "preset or TOML file (moehub list machines); without it dgx-h800", "M"},
        {"--gpus", &request->layer.gpus, "how many take part; without it all", "N"},
        {"--set", &request->layer.settings,
         "change a machine's, a model's or a system's value, as compare does; repeatable",
         "KEY=VALUE"},
        {"--routing", &request->layer.routing, "as compare takes it; without it uniform", "R"},
        {"--layout", &request->layer.layout, "where experts stand, as compare takes it", "FILE"},
        {"--layer", &request->layer.layer, "MoE layer of a trace or a layout; without it 0", "N"},
        {"--seed", &request->layer.seed, "of a generated routing; without it 1", "N"},
        {"--grain", &request->layer.grain, "packet or row", "packet|row"},
        {"--fp8", &request->layer.fp8, "experts compute in FP8, and rows go to them in FP8"},
        {"--json", &request->layer.json, "print JSON; times in µs"},
        {"-o,--output", &request->layer.output, "write to this file instead", "FILE"},
    };
    add_token_options(options, request->layer, "8192");
    return {
        "gain",
        "Where a system's lead comes from: host, activation, overlap, or the hardware",
        std::move(options),
        "Example:\n  moehub gain --machine dgx-h800 --models mixtral-8x7b,deepseek-v3 --tokens "
        "32768",
        [request] { execute(*request); },
    };
}

}  // namespace moehub
