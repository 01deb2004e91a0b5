// Which experts the tokens of a layer choose, generated or recorded, and where those stand.
#include "answers/layer_request.hpp"
#include "base/utf8.hpp"
#include "report/number.hpp"
#include "study/placement_effect.hpp"

#include <moehub/profile.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <utility>

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr int kMostLayers = 1000;

/// What was asked for of a layer's tokens, and what a layout says of it.
struct Choice {
    const LayerRequest& request;
    const std::optional<ExpertLayout>& layout;
    LayoutLayer usual;
};

/// The layer asked for, else the usual one, that both the routing and the layout have.
int layer_of(const Choice& choice, const Routing& routing) {
    const auto& [request, layout, usual] = choice;
    if (!request.layer && layout && usual == LayoutLayer::mean) return mean_layer(*layout, routing);
    const bool only = routing.layers == 1 && !layout && routing.tokens > 0;
    int layers = only ? 1 : routing.layers > 1 ? routing.layers : kMostLayers;
    if (layout) layers = std::min(layers, layout->layers());
    return static_cast<int>(
        count_of("--layer", std::to_string(request.layer.value_or(0)), {0, layers - 1}));
}

/// One layer of a recording, with as many tokens as asked for, else all; where more are asked for,
/// tokens come again.
int take(const Choice& choice, const Routing& recorded, LayerCase& made) {
    const int layer = layer_of(choice, recorded);
    made.trace_layer = recorded.layers == 1 ? 0 : layer;
    const auto tokens = asked_tokens(choice.request, made.input.machine.gpus());
    made.input.routing = one_layer(recorded, *made.trace_layer, tokens.value_or(recorded.tokens));
    return layer;
}

int take_given(const Choice& choice, const Loaded<NamedRouting>& given, LayerCase& made) {
    if (choice.request.seed)
        throw InputError("--seed: found beside a routing that is given, allowed: without");
    const Routing& routing = given.value.value;
    const Model& model = made.input.model;
    if (routing.experts != model.experts || routing.top_k != model.top_k)
        bad_input("routing: found top-{} of {} experts, allowed: top-{} of {}, as {} has",
                  routing.top_k, routing.experts, model.top_k, model.experts,
                  printable(made.model_name));
    made.routing_name = given.name;
    const int layer = take(choice, routing, made);
    made.seed = given.value.seed;
    if (made.seed) made.trace_layer.reset();
    return layer;
}

int take_file(const Choice& choice, const std::string& file, LayerCase& made) {
    if (choice.request.seed)
        throw InputError("--seed: a trace has none, allowed: with a generator");
    const Routing trace = recorded_routing(file, made.input.model);
    if (trace.top_k != made.input.model.top_k)
        bad_input("--routing: found top-{} in {}, allowed: the model's top-{}", trace.top_k,
                  moehub::quoted(file), made.input.model.top_k);
    made.routing_name = file;
    return take(choice, trace, made);
}

int generate(const Choice& choice, RoutingSpec spec, LayerCase& made) {
    const LayerRequest& request = choice.request;
    spec.seed = request.seed.value_or(1);
    const Model& model = made.input.model;
    const std::int64_t tokens =
        asked_tokens(request, made.input.machine.gpus()).value_or(kUsualTokens);
    made.routing_name = to_string(spec);
    made.seed = spec.seed;
    if (!request.layer) {
        made.input.routing = make_routing(spec, model, tokens);
        if (!choice.layout) return 0;
        return layer_of(choice, made.input.routing);
    }
    const int layer = layer_of(choice, {});
    made.input.routing = one_layer(make_routing(spec, model, tokens, layer + 1), layer, tokens);
    return layer;
}

LayoutShape shape_of(const Model& model, int further_layers) {
    LayoutShape shape{model.moe_layers() + further_layers, model.experts, {}, 0};
    shape.layer_numbers.resize(static_cast<std::size_t>(shape.layers));
    std::iota(shape.layer_numbers.begin(), shape.layer_numbers.end(), model.dense_layers);
    shape.model_layers = model.layers + further_layers;
    return shape;
}

/// What a layer's time hangs on.
struct Burden {
    double busiest = 0;  ///< rows of the rank with the most
    double sent = 0;     ///< (token, rank) pairs: rows where a token goes once to a rank
};

/// The burden of the routing's `layer`; token t goes to copy t mod copies of an expert.
Burden burden_of(const Placement& placement, const Routing& routing, int layer) {
    std::vector<double> rows(static_cast<std::size_t>(placement.ranks), 0);
    std::vector<std::int64_t> last(rows.size(), -1);  // token that went there last
    Burden burden;
    for (std::int64_t token = 0; token < routing.tokens; ++token)
        for (const std::uint16_t expert : routing.chosen_by(layer, token)) {
            const auto& hosts = placement.hosts[expert];
            const auto rank =
                static_cast<std::size_t>(hosts[static_cast<std::size_t>(token) % hosts.size()]);
            rows[rank] += 1;
            if (std::exchange(last[rank], token) != token) burden.sent += 1;
        }
    burden.busiest = *std::max_element(rows.begin(), rows.end());
    return burden;
}

ExpertLayout fitting_layout(const Loaded<ExpertLayout>& layout, const Model& model, int ranks) {
    const ExpertLayout& value = layout.value;
    check(value, layout.name);
    const int layers = model.moe_layers() + model.mtp_layers;
    if (value.experts == model.experts && value.gpus == ranks && value.layers() <= layers)
        return value;
    bad_input("{}: found {} of {} experts on {}, allowed: 1 to {} of {} on {}",
              printable(layout.name), several(value.layers(), "layer"), value.experts,
              several(value.gpus, "GPU"), layers, model.experts, ranks);
}
}  // namespace

/// All MoE layers of a recording, with the tokens that have experts in every one of them. Where
/// only counts were recorded, tokens are drawn by those.
Routing recorded_routing(const std::string& file, const Model& model) {
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

void load_routing(const LayerRequest& request, const std::optional<ExpertLayout>& layout,
                  LayoutLayer usual, LayerCase& made) {
    const WantedRouting wanted = request.routing.value_or(WantedRouting{});
    const Choice choice{request, layout, usual};
    const int layer = wanted.given != nullptr ? take_given(choice, *wanted.given, made)
                      : wanted.file.empty()   ? generate(choice, wanted.drawn, made)
                                              : take_file(choice, wanted.file, made);
    if (!layout) return;
    made.input.placement = placement_of(*layout, layer);
    made.replicas = -made.input.model.experts;
    for (const auto& hosts : made.input.placement.hosts)
        made.replicas += static_cast<int>(hosts.size());
    made.layout = LayoutUse{request.layout.name_or(""), layer,
                            layout->layer_numbers[static_cast<std::size_t>(layer)],
                            !request.layer && usual == LayoutLayer::mean};
}

ExpertLayout load_layout(const Wanted<ExpertLayout>& wanted, const Model& model, int ranks) {
    if (wanted.given != nullptr) return fitting_layout(*wanted.given, model, ranks);
    const std::string& file = wanted.name;
    try {
        return read_layout(file, ranks, shape_of(model, 0));
    } catch (const InputError& error) {
        std::error_code absent;
        if (!std::filesystem::exists(file, absent)) bad_input("--layout: {}", error.what());
        // A file may hold the layers of multi-token prediction, too: servers place their experts.
        if (model.mtp_layers > 0) try {
                return read_layout(file, ranks, shape_of(model, model.mtp_layers));
            } catch (const InputError&) {
                // The first error is of the model as it is simulated.
            }
        bad_input(
            "--layout: {} (wanted: {} of {} experts, as {} has, on "
            "{})",
            error.what(), several(model.moe_layers(), "MoE layer"), model.experts,
            printable(model.name), several(ranks, "expert-parallel rank"));
    }
}

int mean_layer(const ExpertLayout& layout, const Routing& routing) {
    const bool one = routing.layers == 1;
    const int layers = one ? layout.layers() : std::min(layout.layers(), routing.layers);
    std::vector<Burden> burdens;
    Burden mean;
    for (int layer = 0; layer < layers; ++layer) {
        burdens.push_back(burden_of(placement_of(layout, layer), routing, one ? 0 : layer));
        mean.busiest += burdens.back().busiest / layers;
        mean.sent += burdens.back().sent / layers;
    }
    const auto distance = [&mean](const Burden& burden) {
        return std::abs(burden.busiest / mean.busiest - 1) + std::abs(burden.sent / mean.sent - 1);
    };
    const auto nearest = std::min_element(
        burdens.begin(), burdens.end(),
        [&](const Burden& a, const Burden& b) { return distance(a) < distance(b); });
    return static_cast<int>(nearest - burdens.begin());
}

}  // namespace moehub
