// From what was typed to what is served.
#include "request/model_arguments.hpp"
#include "request/values.hpp"

#include <moehub/presets.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>

namespace moehub {
namespace {

constexpr const char* kUsualModel = "deepseek-v3";
constexpr const char* kUsualEngine = "sglang";
constexpr std::int64_t kMostContext = 1 << 24;

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
    layer.machine = layer.machine.value_or(kUsualServingMachine);
    layer.model = layer.model.value_or(kUsualModel);
    if (!layer.layout) layer.replicas.reset();
    const LayerCase made = load_layer(layer, LayoutLayer::mean);
    if (recorded) serving.recorded = made.routing;
    const int ranks = serving.what.layout.moe_ep;
    if (layer.layout)
        serving.placement = made.placement;
    else if (copies > 0 || serving.what.model.experts % ranks != 0)
        serving.placement = eplb_placement(made.routing, ranks, copies);
}

Serving load_serving(const ModelArguments& arguments, const LayerArguments& layer,
                     const Machine& machine) {
    const ServingArguments& asked = arguments.serving;
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
    if (model.experts == 0 && !arguments.attention_gpus)
        setup.attention_tp = std::min(gpus, machine.gpus_per_node);
    setup.expert_tp = group("--tp", layer.tensor_parallel);
    const std::int64_t most_copies = std::max(1, model.experts) * (std::int64_t{gpus} - 1);
    setup.copies =
        static_cast<int>(count_of("--replicas", layer.replicas.value_or("0"), {0, most_copies}));
    setup.routing = routing;
    Serving serving =
        serving_on(machine, model, load_engine(asked.engine.value_or(kUsualEngine)), setup);
    use_recorded(serving, layer, setup.copies);
    if (asked.cache) {
        const NumberFormat cache = format_named("--cache", *asked.cache);
        if (cache != NumberFormat::bf16 && cache != NumberFormat::fp8)
            throw InputError(fmt::format("--cache: found {}, allowed: bf16, fp8", *asked.cache));
        serving.what.formats.cache = cache;
    }
    serving.prefill = asked.prefill;
    const std::string_view option = asked.prefill ? "--prompt" : "--context";
    const std::optional<std::string>& text = asked.prefill ? asked.prompt : asked.context;
    if (!text) throw InputError(fmt::format("{}: found nothing, allowed: tokens", option));
    serving.context = count_of(option, *text, {1, kMostContext});
    if (asked.overlap) serving.overlap = overlap_named(*asked.overlap);
    if (asked.tokens_per_step) {
        if (model.mtp_layers == 0)
            throw InputError(fmt::format("--mtp: found with {}, which has no layer for it",
                                         moehub::quoted(model.name)));
        set_tokens_per_step(serving, *asked.tokens_per_step);
    }
    serving.layer.grain = layer.grain == "packet" ? Grain::packet : Grain::row;
    return serving;
}

}  // namespace

std::string weights_of(const ModelArguments& arguments, const Machine& machine) {
    const std::string usual = machine.gpu.fp8_flops > 0 ? "fp8" : "bf16";
    return arguments.serving.weights.value_or(usual);
}

std::vector<Serving> load_servings(const ModelArguments& arguments) {
    LayerArguments layer = arguments.layer;
    const std::string name = layer.machine.value_or(kUsualServingMachine);
    std::vector<std::string> sizes{""};
    if (layer.gpus) sizes = listed(*layer.gpus);
    std::vector<Serving> servings;
    for (const std::string& gpus : sizes) {
        if (layer.gpus) layer.gpus = gpus;
        servings.push_back(load_serving(arguments, layer, machine_of(layer, name)));
    }
    return servings;
}

}  // namespace moehub
