#include "cli/model_serving.hpp"

#include "cli/model_arguments.hpp"
#include "cli/output.hpp"
#include "cli/values.hpp"
#include "report/progress.hpp"
#include "report/served_report.hpp"
#include "report/table.hpp"

#include <moehub/compare.hpp>
#include <moehub/presets.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>

namespace moehub {
namespace {

constexpr const char* kUsualMachine = "dgx-h200";
constexpr const char* kUsualModel = "deepseek-v3";
constexpr const char* kUsualEngine = "sglang";
constexpr const char* kEngine = "engine";  ///< among systems: its own MoE layers
constexpr std::int64_t kMostContext = 1 << 24;
constexpr std::int64_t kMostBatch = 1 << 20;

NumberFormat format_named(std::string_view option, const std::string& name) {
    std::optional<NumberFormat> found;
    std::vector<std::string_view> names;
    for (const NumberFormat format :
         {NumberFormat::bf16, NumberFormat::fp8, NumberFormat::fp8_block, NumberFormat::nvfp4,
          NumberFormat::w4a16}) {
        names.push_back(name_of(format));
        if (name == names.back()) found = format;
    }
    return named(option, name, found, names);
}

BatchOverlap overlap_named(const std::string& name) {
    std::optional<BatchOverlap> found;
    for (const BatchOverlap one :
         {BatchOverlap::none, BatchOverlap::single_batch, BatchOverlap::two_batch})
        if (name == name_of(one)) found = one;
    return named("--overlap", name, found, {"none", "single-batch", "two-batch"});
}

std::vector<std::int64_t> counts_of(std::string_view option, const std::string& text,
                                    std::int64_t most) {
    std::vector<std::int64_t> counts;
    for (const std::string& one : listed(text)) counts.push_back(count_of(option, one, {1, most}));
    return counts;
}

/// Tokens that a step gives each request: one, and the guesses that were right.
void set_tokens_per_step(Serving& serving, const std::string& text) {
    constexpr double kMost = 9;
    constexpr std::string_view kAllowed = "tokens a step, 1 to 9";
    const double tokens = number_of("--mtp", text, kMost, kAllowed);
    if (tokens < 1)
        throw InputError(
            fmt::format("--mtp: found {}, allowed: {}", moehub::quoted(text), kAllowed));
    serving.accepted = tokens - 1;
    serving.drafts = static_cast<int>(std::ceil(serving.accepted));
}

/// Options of simulated training and of layers that a served model does not have.
void refuse_others(const ModelArguments& arguments) {
    const LayerArguments& layer = arguments.layer;
    const std::pair<const char*, bool> others[] = {
        {"--training", arguments.training},
        {"--sequence", arguments.sequence.has_value()},
        {"--graphs", arguments.graphs},
        {"--attention-system", arguments.attention_system.has_value()},
        {"--overlap-gradients", arguments.overlap_gradients},
        {"--tokens", layer.tokens.has_value()},
        {"--host", layer.host.has_value()},
        {"--fp8", layer.fp8},
        {"--kernels", layer.kernels != "torch"},
    };
    for (const auto& [option, typed] : others)
        if (typed)
            throw InputError(fmt::format("{}: found with --{}, allowed: without it", option,
                                         arguments.serving.decode ? "decode" : "prefill"));
}

std::string weights_of(const ModelArguments& arguments, const Machine& machine) {
    const std::string usual = machine.gpu.fp8_flops > 0 ? "fp8" : "bf16";
    return arguments.serving.weights.value_or(usual);
}

/// A file of routing, not a generator.
bool is_recorded(const LayerArguments& layer) {
    if (!layer.routing) return false;
    try {
        parse_routing(*layer.routing);
        return false;
    } catch (const InputError&) {
        std::error_code absent;
        const std::string file = layer.routing->substr(0, layer.routing->rfind(':'));
        return std::filesystem::exists(*layer.routing, absent) ||
               std::filesystem::exists(file, absent);
    }
}

/// Recorded tokens and a layout's experts, of the layer that stands for all.
void use_recorded(Serving& serving, LayerArguments layer, int copies) {
    const bool recorded = is_recorded(layer);
    if (!recorded && !layer.layout) return;
    layer.machine = layer.machine.value_or(kUsualMachine);
    layer.model = layer.model.value_or(kUsualModel);
    if (!layer.layout) layer.replicas.reset();
    const LayerCase made = load_layer(layer, LayoutLayer::mean);
    if (recorded) serving.recorded = made.routing;
    serving.placement = layer.layout
                            ? made.placement
                            : eplb_placement(made.routing, serving.what.layout.moe_ep, copies);
}

Serving load_serving(const ModelArguments& arguments, const Machine& machine) {
    const ServingArguments& asked = arguments.serving;
    const LayerArguments& layer = arguments.layer;
    const Model model = model_of(layer, layer.model.value_or(kUsualModel));
    RoutingSpec routing;
    if (!is_recorded(layer)) routing = parse_routing(layer.routing.value_or("uniform"));
    if (layer.seed)
        routing.seed = static_cast<std::uint64_t>(count_of("--seed", *layer.seed, {0, 1L << 62}));
    const int gpus = machine.gpus();
    const auto group = [&](std::string_view option, const std::optional<std::string>& text) {
        const auto count = static_cast<int>(count_of(option, text.value_or("1"), {1, gpus}));
        if (gpus % count == 0) return count;
        throw InputError(
            fmt::format("{}: found {}, allowed: divisors of the {} GPUs", option, count, gpus));
    };
    ServingSetup setup;
    setup.weights = format_named("--weights", weights_of(arguments, machine));
    setup.attention_tp = group("--attention-tp", arguments.attention_gpus);
    setup.expert_tp = group("--tp", layer.tensor_parallel);
    const std::int64_t most_copies = std::max(1, model.experts) * (std::int64_t{gpus} - 1);
    setup.copies =
        static_cast<int>(count_of("--replicas", layer.replicas.value_or("0"), {0, most_copies}));
    setup.routing = routing;
    Serving serving =
        serving_on(machine, model, load_engine(asked.engine.value_or(kUsualEngine)), setup);
    use_recorded(serving, layer, setup.copies);
    if (asked.cache) serving.what.formats.cache = format_named("--cache", *asked.cache);
    serving.prefill = asked.prefill;
    const std::string_view option = asked.prefill ? "--prompt" : "--context";
    const std::optional<std::string>& text = asked.prefill ? asked.prompt : asked.context;
    if (!text) throw InputError(fmt::format("{}: found nothing, allowed: tokens", option));
    serving.context = count_of(option, *text, {1, kMostContext});
    if (asked.overlap) serving.overlap = overlap_named(*asked.overlap);
    if (asked.tokens_per_step) set_tokens_per_step(serving, *asked.tokens_per_step);
    serving.layer.grain = layer.grain == "packet" ? Grain::packet : Grain::row;
    return serving;
}

/// One serving for each number of GPUs.
std::vector<Serving> load_servings(const ModelArguments& arguments) {
    LayerArguments layer = arguments.layer;
    const std::string name = layer.machine.value_or(kUsualMachine);
    std::vector<std::string> sizes{""};
    if (layer.gpus) sizes = listed(*layer.gpus);
    std::vector<Serving> servings;
    for (const std::string& gpus : sizes) {
        if (layer.gpus) layer.gpus = gpus;
        servings.push_back(load_serving(arguments, machine_of(layer, name)));
    }
    return servings;
}

std::vector<std::string> usual_systems(const Serving& serving) {
    if (serving.what.model.moe_layers() == 0 || serving.gpus() == 1) return {kEngine};
    return {kEngine, serving.prefill ? "deepep" : "deepep-ll", "moe-hub"};
}

/// Systems that were named must run; of the usual ones those that cannot are left out.
void run(ServedCase& what, const std::vector<std::string>& names, bool named_by_user,
         const ModelArguments& arguments, int threads) {
    Progress progress("simulating");
    ServeOptions options{threads, ServingClock(what.serving.what).costs(), {}};
    check(what.serving);
    for (std::size_t i = 0; i < names.size(); ++i) {
        progress.update(i, names.size());
        try {
            if (names[i] == kEngine) {
                what.steps.push_back(serve_by_engine(what.serving, options));
                continue;
            }
            what.steps.push_back(
                serve(what.serving, load_systems(arguments.layer, {names[i]}), options).front());
        } catch (const InputError& error) {
            if (named_by_user) throw;
            what.left_out.push_back(fmt::format("{} ({})", names[i], error.what()));
        }
    }
    progress.update(names.size(), names.size());
    if (what.steps.empty()) throw InputError(what.left_out.front());
}

std::optional<SystemSpec> system_named(const ModelArguments& arguments, const std::string& name) {
    if (name == kEngine) return std::nullopt;
    return load_systems(arguments.layer, {name}).front();
}

ServedCase case_of(const ModelArguments& arguments, const Serving& serving) {
    ServedCase what;
    what.serving = serving;
    what.machine_name = arguments.layer.machine.value_or(kUsualMachine);
    what.weights = weights_of(arguments, serving.what.machine);
    what.settings = settings_of(arguments.layer);
    return what;
}

/// Every size under the first system, with progress.
void sizes_command(const ModelArguments& arguments, const std::vector<Serving>& servings,
                   const std::vector<std::int64_t>& batches, const std::string& system,
                   int threads) {
    Progress progress("simulating");
    ServeOptions options{threads, nullptr,
                         [&](std::size_t done, std::size_t all) { progress.update(done, all); }};
    SizesCase sizes{case_of(arguments, servings.front()), system, {}};
    const std::optional<SystemSpec> spec = system_named(arguments, system);
    if (!spec) sizes.system = servings.front().what.engine.name;
    if (arguments.serving.find) {
        const double limit = to_seconds(time_of("--tpot", *arguments.serving.tpot));
        for (const Serving& serving : servings) {
            sizes.points.push_back(find_batch(serving, spec, limit, {threads, nullptr, {}}));
            progress.update(sizes.points.size(), servings.size());
        }
    } else {
        sizes.points = serve_sizes(servings, batches, spec, options);
    }
    const std::string& output = arguments.layer.output;
    const bool colour = output.empty() && wants_colour(stdout);
    put(arguments.layer.json ? to_json(sizes)
                             : head_text(sizes.what) + "\n" + sizes_text(sizes, colour),
        output);
}

}  // namespace

void add_serving_options(std::vector<Option>& options, ServingArguments& arguments) {
    options.push_back({"--decode",
                       &arguments.decode,
                       "serve: a step of decoding; needs --context and --batch-per-gpu",
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
    options.push_back({"--overlap", &arguments.overlap,
                       "serve: what runs while rows travel: none, single-batch, two-batch; "
                       "without it none",
                       "O"});
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

void serve_model_command(const ModelArguments& arguments) {
    refuse_others(arguments);
    const ServingArguments& asked = arguments.serving;
    if (asked.find && *asked.find != "batch")
        throw InputError(
            fmt::format("--find: found {}, allowed: batch", moehub::quoted(*asked.find)));
    std::vector<Serving> servings = load_servings(arguments);
    const std::vector<std::string> systems =
        arguments.systems ? listed(*arguments.systems) : usual_systems(servings.front());
    std::vector<std::string> simulated = systems;
    std::erase(simulated, kEngine);
    if (!simulated.empty()) check_systems(simulated);
    if (!asked.batch_per_gpu && !asked.find)
        throw InputError("--batch-per-gpu: found nothing, allowed: requests of a GPU, or --find");
    if (asked.batch_per_gpu && asked.find)
        throw InputError("--batch-per-gpu: found with --find, allowed: one of them");
    std::vector<std::int64_t> batches;
    if (asked.batch_per_gpu)
        batches = counts_of("--batch-per-gpu", *asked.batch_per_gpu, kMostBatch);
    const int threads = options_of(arguments).threads;
    if (asked.find || servings.size() > 1 || batches.size() > 1) {
        const bool several = arguments.systems && systems.size() > 1;
        if (several) throw InputError("--systems: found several, allowed of a table: one");
        return sizes_command(arguments, servings, batches,
                             arguments.systems || systems.size() == 1 ? systems[0] : systems[1],
                             threads);
    }
    servings.front().batch_per_gpu = batches.front();
    ServedCase what = case_of(arguments, servings.front());
    run(what, systems, arguments.systems.has_value(), arguments, threads);
    const std::string& output = arguments.layer.output;
    const bool colour = output.empty() && wants_colour(stdout);
    put(arguments.layer.json ? to_json(what)
                             : head_text(what) + "\n" + operators_text(what, colour) + "\n" +
                                   steps_text(what, colour),
        output);
}

}  // namespace moehub
