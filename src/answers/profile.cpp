// What recorded routing is like: load, pairs, drift, and what placing can win.
#include "answers/profile_answer.hpp"
#include "answers/profiles.hpp"
#include "answers/questions.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace moehub {
namespace {

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
    throw InputError(
        fmt::format("--layer: found {}, which is not recorded, allowed: {} of {} to {}", number,
                    layers.size(), layers.front().number, layers.back().number));
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

std::vector<std::string> inputs_of(const Request& request) {
    return files_of(request.files);
}

}  // namespace

Question profile_question() {
    return {.name = "profile",
            .python = "profile",
            .doc = "What recorded routing is like: load, pairs, drift, and what placing can win",
            .overview = "what recorded routing is like",
            .example = "moehub profile law.npy intent.npy --gpus 8 --layer 3 --html routing.html",
            .first = "files",
            .ask = [] { return asked(options_of, answer_of, inputs_of); }};
}

}  // namespace moehub
