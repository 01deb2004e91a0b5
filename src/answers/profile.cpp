// What recorded routing is like: load, pairs, drift, and what placing can win.
#include "answers/profile_answer.hpp"
#include "answers/profiles.hpp"
#include "answers/question.hpp"
#include "base/utf8.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr Range kExpertCount{1, 65534};
constexpr Range kLayerCount{1, 65535};

void check_against(const Model& model, const Profile& profile) {
    const auto check = [&](std::string_view what, int found, int allowed, bool right) {
        if (!right)
            bad_input("{}: {}: found {}, allowed: {}, as the model has", printable(profile.name),
                      what, found, allowed);
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
    profile.layer_numbers.resize(static_cast<std::size_t>(from.layers));
    std::iota(profile.layer_numbers.begin(), profile.layer_numbers.end(), dense_layers);
    profile.model_layers = dense_layers + from.layers;
    profile.experts = from.experts;
    profile.top_k = from.top_k;
    profile.tokens = from.tokens;
    profile.chosen = from.chosen.copy();
    count_choices(profile);
    return profile;
}

/// Names are parsed before any file is read, which may take long.
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

constexpr int kUsualGpus = 8;

struct Request {
    ProfileRequest files;
    std::optional<int> gpus;
    std::optional<int> layer;
};

Options options_of(Request& request) {
    Options options{{"files",
                     to_profiles(request.files.profiles),
                     "recorded routing, FILE[:from-to], a part as fractions of its tokens; several "
                     "are compared",
                     {.required = true, .many = true}}};
    append(options, profile_options(request.files));
    append(options,
           {{"--gpus", to(request.gpus, at_least(1)), "that experts are spread over; without it 8"},
            {"--layer", to(request.layer, at_least(0)), "this one in detail, by its number"}});
    return options;
}

int gpus_of(const Request& request, int experts) {
    if (!request.gpus) return std::min(kUsualGpus, experts);
    return static_cast<int>(count_of("--gpus", std::to_string(*request.gpus), {1, experts}));
}

/// From a layer's number in the model to its place in the profile.
std::optional<int> layer_of(const Request& request, const ProfileSummary& summary) {
    if (!request.layer) return std::nullopt;
    const auto& layers = summary.layers;
    const std::int64_t number = count_of("--layer", std::to_string(*request.layer),
                                         {layers.front().number, layers.back().number});
    for (std::size_t place = 0; place < layers.size(); ++place)
        if (layers[place].number == number) return static_cast<int>(place);
    bad_input("--layer: found {}, which is not recorded, allowed: {} of {} to {}", number,
              layers.size(), layers.front().number, layers.back().number);
}

Answer answer_of(const Request& request, const Asker& asker) {
    const std::optional<Model> model = profiled_model(request.files);
    const std::vector<Profile> profiles = load_profiles(request.files, model ? &*model : nullptr);
    SummaryOptions options;
    options.gpus = gpus_of(request, profiles.front().experts);
    ProfileReport report;
    for (const Profile& profile : profiles) report.profiles.push_back(summarize(profile, options));
    if (profiles.size() > 1) report.differences = differences(profiles);
    report.layer = layer_of(request, report.profiles.front());
    if (asker.wants_page)
        report.pairs = pair_matrices(profiles.front(), report.detailed_layer(), options);
    return profile_answer(report);
}
}  // namespace

Options profile_options(ProfileRequest& request) {
    return {
        {"--experts", to(request.experts, kExpertCount),
         "of a layer, where the file does not say; without it the largest found"},
        {"--model", to(request.model),
         "preset or TOML file (moehub list models): its experts, and layers by its numbers",
         excludes({"--experts"})},
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
        bad_input("--model: found {}, which has no experts, allowed: a model with experts",
                  moehub::quoted(request.model.name_or("")));
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

Question profile_question() {
    return {.first = "files", .ask = asking(options_of, answer_of, [](const Request& request) {
                                  return files_of(request.files);
                              })};
}

}  // namespace moehub
