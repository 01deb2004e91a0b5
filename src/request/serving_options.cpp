#include "request/model_arguments.hpp"

#include <moehub/error.hpp>

#include <utility>

#include <fmt/format.h>

namespace moehub {

void add_serving_options(std::vector<Option>& options, ServingArguments& arguments) {
    options.push_back({"--decode",
                       &arguments.decode,
                       "serve: a step of decoding; needs --context and --batch-per-gpu; without "
                       "--machine and --model dgx-h200 and deepseek-v3",
                       {},
                       {.excludes = {"--prefill"}}});
    options.push_back({"--prefill", &arguments.prefill,
                       "serve: a step that reads prompts; needs --prompt and --batch-per-gpu"});
    options.push_back({"--context", &arguments.context,
                       "decode: tokens that each request has in the cache", "N"});
    options.push_back({"--prompt", &arguments.prompt, "prefill: tokens of a prompt", "N"});
    options.push_back({"--batch-per-gpu", &arguments.batch_per_gpu,
                       "serve: requests, or prompts, of a GPU at a time; several with commas, and "
                       "several --gpus, make a table",
                       "B"});
    options.push_back({"--engine", &arguments.engine,
                       "serve: preset or TOML file (moehub list engines); without it sglang", "E"});
    options.push_back({"--weights", &arguments.weights,
                       "serve: bf16, fp8, fp8-block, nvfp4, w4a16; without it fp8 where the card "
                       "has it",
                       "FORMAT"});
    options.push_back({"--cache", &arguments.cache,
                       "serve: bf16 or fp8; without it as checkpoints of those weights", "FORMAT"});
    options.push_back({"--overlap",
                       &arguments.overlap,
                       "serve: what runs while rows travel: none, single-batch, two-batch; "
                       "without it none",
                       "O",
                       {},
                       {"none", "single-batch", "two-batch"}});
    options.push_back({"--mtp", &arguments.tokens_per_step,
                       "decode: tokens that a step gives a request by multi-token prediction, as "
                       "1.8; without it 1",
                       "N"});
    options.push_back({"--find",
                       &arguments.find,
                       "serve: batch: the largest that keeps --tpot and fits in memory",
                       "WHAT",
                       {.needs = "--tpot"}});
    options.push_back({"--tpot",
                       &arguments.tpot,
                       "longest time per token, or of a step of prompts, as 50ms",
                       "TIME",
                       {.needs = "--find"}});
}

void require_no_serving(const ServingArguments& arguments) {
    for (const auto& [option, typed] :
         {std::pair("--context", &arguments.context), std::pair("--prompt", &arguments.prompt),
          std::pair("--batch-per-gpu", &arguments.batch_per_gpu),
          std::pair("--engine", &arguments.engine), std::pair("--weights", &arguments.weights),
          std::pair("--cache", &arguments.cache), std::pair("--overlap", &arguments.overlap),
          std::pair("--mtp", &arguments.tokens_per_step), std::pair("--find", &arguments.find)})
        if (typed->has_value())
            throw InputError(
                fmt::format("{}: found alone, allowed: with --decode or --prefill", option));
}

/// Options of simulated training and of layers that a served model does not have.
void refuse_unserved(const ModelArguments& arguments) {
    const LayerArguments& layer = arguments.layer;
    const std::pair<const char*, bool> others[] = {
        {"--training", arguments.training},
        {"--sequence", arguments.sequence.has_value()},
        {"--graphs", arguments.graphs},
        {"--attention-system", arguments.attention_system.has_value()},
        {"--overlap-gradients", arguments.overlap_gradients},
        {"--tokens", layer.tokens.has_value()},
        {"--tokens-per-gpu", layer.tokens_per_gpu.has_value()},
        {"--baseline", !layer.baseline.empty()},
        {"--host", layer.host.has_value()},
        {"--verify", layer.verify},
        {"--region-rows", layer.region_rows.has_value()},
        {"--page-rows", layer.page_rows.has_value()},
        {"--page-pool", layer.page_pool.has_value()},
        {"--replica-policy", layer.replica_policy.has_value()},
        {"--pass", layer.pass.has_value()},
        {arguments.serving.decode ? "--prompt" : "--context",
         (arguments.serving.decode ? arguments.serving.prompt : arguments.serving.context)
             .has_value()},
        {"--mtp", arguments.serving.prefill && arguments.serving.tokens_per_step.has_value()},
        {"--fp8", layer.fp8},
        {"--kernels", layer.kernels != "torch"},
    };
    for (const auto& [option, typed] : others)
        if (typed)
            throw InputError(fmt::format("{}: found with --{}, allowed: without it", option,
                                         arguments.serving.decode ? "decode" : "prefill"));
}

}  // namespace moehub
