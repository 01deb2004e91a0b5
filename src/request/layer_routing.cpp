#include "request/layer_routing.hpp"

#include "base/utf8.hpp"
#include "request/layer_layout.hpp"
#include "request/values.hpp"
#include "study/placement_effect_steps.hpp"

#include <filesystem>
#include <limits>

namespace moehub {
namespace {

constexpr std::int64_t kUsualTokens = 8192;
constexpr const char* kUsualRouting = "uniform";
constexpr int kMostLayers = 1000;
constexpr std::int64_t kMostCount = std::numeric_limits<std::int64_t>::max();

bool is_trace(const std::string& routing) {
    const std::string path = routing.substr(0, routing.find_first_of(":@"));
    const auto ends = [&](const char* ending) {
        return path.ends_with(ending) || routing.ends_with(ending);
    };
    std::error_code absent;
    return routing.find('/') != std::string::npos || ends(".npy") || ends(".pt") || ends(".csv") ||
           ends(".jsonl") || ends(".safetensors") || std::filesystem::is_directory(path, absent);
}

/// All layers with experts of a recording, with every token that has experts in each; of counts
/// with tokens drawn by them.
Routing recorded(const std::string& file, const Model& model) {
    if (file.ends_with(".npy")) return read_routing(file, model.experts);
    ProfileOptions options;
    options.experts = model.experts;
    Profile profile = read_profile(parse_profile_source(file), options);
    if (!profile.has_tokens()) profile = with_drawn_tokens(profile, model);
    const ProfileSteps steps(profile, profile.tokens, 1);
    Routing all{profile.experts, profile.top_k, profile.layers, steps.tokens(), {}, {}};
    std::vector<std::uint16_t> chosen;
    std::vector<float> weights;
    for (int layer = 0; layer < profile.layers; ++layer) {
        const Routing one = steps.routing(layer, 0);
        chosen.insert(chosen.end(), one.chosen.begin(), one.chosen.end());
        weights.insert(weights.end(), one.weights.begin(), one.weights.end());
    }
    all.chosen = std::move(chosen);
    all.weights = std::move(weights);
    return all;
}

/// As typed, else as usual: of the routing's layers and the layout's.
int layer_of(const LayerArguments& arguments, const std::optional<ExpertLayout>& layout,
             LayoutLayer usual, const Routing& routing) {
    if (!arguments.layer && layout && usual == LayoutLayer::mean)
        return mean_layer(*layout, routing);
    int layers = routing.layers > 1 ? routing.layers : kMostLayers;
    if (layout) layers = std::min(layers, layout->layers());
    return static_cast<int>(count_of("--layer", arguments.layer.value_or("0"), {0, layers - 1}));
}

void check_top_k(const Routing& trace, const std::string& file, const Model& model) {
    if (trace.top_k != model.top_k)
        throw InputError(fmt::format("--routing: found top-{} in {}, allowed: the model's top-{}",
                                     trace.top_k, moehub::quoted(file), model.top_k));
}

/// A trace gives all its tokens unless asked for another number.
int read_trace(const LayerArguments& arguments, const std::optional<ExpertLayout>& layout,
               LayoutLayer usual, LayerCase& made) {
    if (arguments.seed) throw InputError("--seed: a trace has none, allowed: with a generator");
    const std::string& file = *arguments.routing;
    const Routing trace = recorded(file, made.model);
    check_top_k(trace, file, made.model);
    const int layer =
        trace.layers == 1 && !layout
            ? static_cast<int>(count_of("--layer", arguments.layer.value_or("0"), {0, 0}))
            : layer_of(arguments, layout, usual, trace);
    made.trace_layer = trace.layers == 1 ? 0 : layer;
    made.routing_name = file;
    made.routing = one_layer(trace, *made.trace_layer,
                             asked_tokens(arguments, made.machine.gpus()).value_or(trace.tokens));
    return layer;
}

/// Tokens and layer as asked for, else all of the first layer; no token is copied.
int take(const LayerArguments& arguments, const std::optional<ExpertLayout>& layout,
         LayoutLayer usual, const NamedRouting& given, LayerCase& made) {
    for (const auto& [option, typed] : {std::pair("--routing", arguments.routing.has_value()),
                                        std::pair("--seed", arguments.seed.has_value())})
        if (typed)
            throw InputError(
                fmt::format("{}: found beside a routing that is given, allowed: without", option));
    const Routing& routing = given.value;
    if (routing.experts != made.model.experts || routing.top_k != made.model.top_k)
        throw InputError(fmt::format(
            "routing: found top-{} of {} experts, allowed: top-{} of {}, as {} has", routing.top_k,
            routing.experts, made.model.top_k, made.model.experts, printable(made.model_name)));
    const int layer =
        routing.layers == 1 && !layout
            ? static_cast<int>(count_of("--layer", arguments.layer.value_or("0"), {0, 0}))
            : layer_of(arguments, layout, usual, routing);
    const int taken = routing.layers == 1 ? 0 : layer;
    if (!given.seed) made.trace_layer = taken;
    made.routing_name = given.name;
    made.seed = given.seed;
    made.routing = one_layer(routing, taken,
                             asked_tokens(arguments, made.machine.gpus()).value_or(routing.tokens));
    return layer;
}

int generate(const LayerArguments& arguments, const std::optional<ExpertLayout>& layout,
             LayoutLayer usual, LayerCase& made) {
    RoutingSpec spec = parse_routing(arguments.routing.value_or(kUsualRouting));
    spec.seed = static_cast<std::uint64_t>(
        count_of("--seed", arguments.seed.value_or("1"), {0, kMostCount}));
    const std::int64_t tokens = asked_tokens(arguments, made.machine.gpus()).value_or(kUsualTokens);
    made.routing_name = to_string(spec);
    made.seed = spec.seed;
    if (!arguments.layer) {
        made.routing = make_routing(spec, made.model, tokens);
        return layer_of(arguments, layout, usual, made.routing);
    }
    const int layer = layer_of(arguments, layout, usual, {});
    made.routing = one_layer(make_routing(spec, made.model, tokens, layer + 1), layer, tokens);
    return layer;
}

}  // namespace

void load_routing(const LayerArguments& arguments, const std::optional<ExpertLayout>& layout,
                  LayoutLayer usual, const LayerNouns& given, LayerCase& made) {
    const bool trace = is_trace(arguments.routing.value_or(kUsualRouting));
    const int layer = given.routing != nullptr
                          ? take(arguments, layout, usual, *given.routing, made)
                      : trace ? read_trace(arguments, layout, usual, made)
                              : generate(arguments, layout, usual, made);
    if (!layout) return;
    made.placement = placement_of(*layout, layer);
    made.replicas = -made.model.experts;
    for (const auto& hosts : made.placement.hosts) made.replicas += static_cast<int>(hosts.size());
    made.layout = LayoutUse{given.layout != nullptr ? given.layout->name : *arguments.layout, layer,
                            layout->layer_numbers[static_cast<std::size_t>(layer)],
                            !arguments.layer && usual == LayoutLayer::mean};
}

}  // namespace moehub
