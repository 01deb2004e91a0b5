#include "cli/commands.hpp"
#include "cli/html_output.hpp"
#include "cli/model_commands.hpp"
#include "cli/output.hpp"
#include "report/document.hpp"
#include "report/model_page.hpp"
#include "report/model_report.hpp"
#include "report/progress.hpp"
#include "request/values.hpp"

#include <memory>

namespace moehub {
namespace {

void run(ModelCase& model, const std::vector<SystemSpec>& systems) {
    Progress progress("simulating");
    ModelOptions options = model.options;
    options.progress = [&progress](std::size_t done, std::size_t total) {
        progress.update(done, total);
    };
    model.times = simulate_models(model.layer.input(), systems, options);
}

void execute(const ModelArguments& request) {
    const LayerArguments& arguments = request.layer;
    require_writable({output_file("-o", arguments.output), html_file(arguments.html)});
    if (request.serving.asked()) return serve_model_command(request);
    require_no_serving(request.serving);
    if (is_dense(arguments)) return dense_model_command(request);
    ModelCase model = load_moe_model(request);
    run(model, load_systems(request, model));
    const auto document = [&] { return document_text("model", model_json(model)); };
    if (arguments.html.asked()) put_page(arguments.html, model_page(model), document());
    const TextStyle style = style_for(arguments.output);
    put(arguments.json ? document()
                       : fitted(head_text(model) + "\n" +
                                    parts_text(model.times, model.options.training, style) + "\n" +
                                    table_text(model.times, model.options.baseline, style) + "\n" +
                                    bars_text(model.times, style) + "\n" + checks_text(model),
                                style.width),
        arguments.output);
}

}  // namespace

Command model_command() {
    const auto request = std::make_shared<ModelArguments>();
    std::vector<Option> options{
        {"--systems", &request->systems,
         "names or TOML files with commas between (moehub list systems); without it "
         "ideal,megatron-te,moe-hub, of a dense model ideal,tp-nvls,cais",
         "A,B"},
        {"--attention-tp", &request->attention_gpus,
         "beside experts: groups of so many GPUs share attention by tensor parallelism; without it "
         "every GPU has its own",
         "N"},
        {"--attention-system",
         &request->attention_system,
         "by which they share it; without it tp-nvls",
         "S",
         {.needs = "--attention-tp"}},
    };
    add_model_options(options, *request);
    add_serving_options(options, request->serving);
    add_layer_options(options, request->layer);
    options.push_back(baseline_option(request->layer.baseline));
    add_software_options(options, request->layer);
    options.push_back({"--kernels", &request->layer.kernels,
                       "library of linear layers and prompts' attention: torch, trtllm; MoE layers "
                       "run torch's",
                       "LIBRARY"});
    options.push_back({"--threads", &request->threads,
                       "systems simulated at a time, same result; without it as many as cores",
                       "N"});
    return {
        "model",
        "Time a whole model under several systems: by layer type, tokens/s, MFU",
        std::move(options),
        "Example:\n  moehub model --machine dgx-h800 --model mixtral-8x7b --tokens 8192 "
        "\\\n      --systems megatron-te,moe-hub --training\n"
        "  moehub model --model llama-7b --graphs\n"
        "  moehub model --attention-tp 4 --attention-system cais\n"
        "  moehub model --decode --machine h100-cluster --gpus 72 --model deepseek-v3 "
        "\\\n      --context 2000 --batch-per-gpu 128",
        [request] { execute(*request); },
    };
}

}  // namespace moehub
