#include "answers/profiles.hpp"

#include "answers/machine_options.hpp"
#include "base/utf8.hpp"

#include <numeric>

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr Range kExpertCount{1, 65534};
constexpr Range kLayerCount{1, 65535};

void check_against(const Model& model, const Profile& profile) {
    const auto check = [&](std::string_view what, int found, int allowed, bool right) {
        if (!right)
            throw InputError(fmt::format("{}: {}: found {}, allowed: {}, as the model has",
                                         printable(profile.name), what, found, allowed));
    };
    check("experts", profile.experts, model.experts, profile.experts == model.experts);
    check("top-k", profile.top_k, model.top_k, profile.top_k == 0 || profile.top_k == model.top_k);
    check("layers", profile.layers, model.moe_layers(),
          profile.layers <= model.moe_layers() + model.mtp_layers);
}

/// What tokens chose, as if it had been recorded.
Profile profile_of(const Loaded<NamedRouting>& routing, int dense_layers) {
    const Routing& from = routing.value.value;
    Profile profile;
    profile.name = routing.name;
    profile.layers = from.layers;
    profile.experts = from.experts;
    profile.top_k = from.top_k;
    profile.tokens = from.tokens;
    profile.chosen = from.chosen.copy();
    profile.layer_numbers.resize(static_cast<std::size_t>(from.layers));
    std::iota(profile.layer_numbers.begin(), profile.layer_numbers.end(), dense_layers);
    profile.model_layers = dense_layers + from.layers;
    count_choices(profile);
    return profile;
}

/// All names before any file: reading may take long.
std::vector<ProfileSource> sources_of(const ProfileRequest& request) {
    std::vector<ProfileSource> sources;
    for (const auto* list : {&request.profiles, &request.held_out})
        for (const auto& one : *list)
            sources.push_back(one.given ? ProfileSource{} : parse_profile_source(one.name));
    return sources;
}

std::vector<ProfileSource> ranks_of(const ProfileRequest& request) {
    std::vector<ProfileSource> sources;
    for (const std::string& text : request.ranks) sources.push_back(parse_profile_source(text));
    return sources;
}

}  // namespace

Options profile_options(ProfileRequest& request) {
    return {
        {"--experts", to(request.experts, kExpertCount),
         "of a layer, where the file does not say; without it the largest found"},
        {"--model",
         to(request.model),
         "preset or TOML file (moehub list models): its experts, and layers by its numbers",
         {.excludes = {"--experts"}}},
        {"--profile-kind",
         to(request.kind,
            Named<ArrayKind>{{"tokens", ArrayKind::tokens}, {"counts", ArrayKind::counts}}),
         "what an array of three dimensions is: tokens, [token, layer, k], or counts, [step, "
         "layer, expert]; without it found out"},
        {"--layers", to(request.layers, kLayerCount),
         "of ids, for files that do not say (base64 without a shape)"},
        {"--top-k", to(request.top_k, kExpertCount), "likewise"},
    };
}

std::optional<Model> profiled_model(const ProfileRequest& request) {
    if (!request.model.said()) return std::nullopt;
    Model model = model_of(request.model, {});
    if (model.experts == 0)
        throw InputError(
            fmt::format("--model: found {}, which has no experts, allowed: a model with experts",
                        moehub::quoted(request.model.name_or(""))));
    return model;
}

std::vector<Profile> load_profiles(const ProfileRequest& request, const Model* model) {
    ProfileOptions options{.experts = request.experts.value_or(0),
                           .kind = request.kind,
                           .layers = request.layers.value_or(0),
                           .top_k = request.top_k.value_or(0)};
    if (model != nullptr) {
        options.experts = model->experts;
        options.dense_layers = model->dense_layers;
    }
    const std::vector<ProfileSource> ranks = ranks_of(request), sources = sources_of(request);
    std::vector<Profile> profiles;
    if (!ranks.empty()) profiles.push_back(read_profile(ranks, options));
    auto source = sources.begin();
    for (const auto* list : {&request.profiles, &request.held_out})
        for (const auto& one : *list) {
            profiles.push_back(one.given ? profile_of(*one.given, request.dense_layers.value_or(
                                                                      options.dense_layers))
                                         : read_profile(*source, options));
            ++source;
        }
    if (model != nullptr)
        for (const Profile& profile : profiles) check_against(*model, profile);
    check_together(profiles);
    return profiles;
}

std::vector<std::string> files_of(const ProfileRequest& request) {
    std::vector<std::string> files;
    for (const auto& sources : {ranks_of(request), sources_of(request)})
        for (const ProfileSource& one : sources)
            if (!one.path.empty()) files.push_back(one.path);
    return files;
}

}  // namespace moehub
