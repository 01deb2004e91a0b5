#include "base/utf8.hpp"
#include "cli/commands.hpp"
#include "cli/html_output.hpp"
#include "cli/output.hpp"
#include "report/document.hpp"
#include "report/profile_page.hpp"
#include "report/profile_report.hpp"
#include "request/profile_arguments.hpp"
#include "request/values.hpp"

#include <algorithm>
#include <memory>

namespace moehub {
namespace {

constexpr int kUsualGpus = 8;

struct Request {
    ProfileArguments profiles;
    std::optional<std::string> gpus;
    std::optional<std::string> layer;
    bool json = false;
    std::string output;
    std::optional<std::string> svg;
    HtmlOutput html;

    bool pictures() const { return svg || html.asked(); }
};

/// Before long work: what is written at its end.
void check_outputs(const Request& request) {
    const std::vector<OutputFile> files{
        output_file("-o", request.output), {"--svg", request.svg}, html_file(request.html)};
    for (const OutputFile& file : files)
        if (file.path) check_output_apart(file.option, *file.path, request.profiles.files);
    require_writable(files);
}

int gpus_of(const Request& request, int experts) {
    if (!request.gpus) return std::min(kUsualGpus, experts);
    return static_cast<int>(count_of("--gpus", *request.gpus, {1, experts}));
}

/// From a layer's number in the model to its place in the profile.
std::optional<int> layer_of(const Request& request, const ProfileSummary& summary) {
    if (!request.layer) return std::nullopt;
    const auto& layers = summary.layers;
    const std::int64_t number =
        count_of("--layer", *request.layer, {layers.front().number, layers.back().number});
    for (std::size_t place = 0; place < layers.size(); ++place)
        if (layers[place].number == number) return static_cast<int>(place);
    throw InputError(
        fmt::format("--layer: found {}, which is not recorded, allowed: {} of {} to {}", number,
                    layers.size(), layers.front().number, layers.back().number));
}

ProfileReport report_of(const Request& request, const std::vector<Profile>& profiles) {
    SummaryOptions options;
    options.gpus = gpus_of(request, profiles.front().experts);
    ProfileReport report;
    for (const Profile& profile : profiles) report.profiles.push_back(summarize(profile, options));
    if (profiles.size() > 1) report.differences = differences(profiles);
    report.layer = layer_of(request, report.profiles.front());
    if (request.pictures())
        report.pairs = pair_matrices(profiles.front(), report.pictured_layer(), options);
    return report;
}

void execute(const Request& request) {
    check_outputs(request);
    const ProfileReport report = report_of(request, load_profiles(request.profiles));
    const TextStyle style = style_for(request.output);
    if (request.svg) put(profile_svg(report), *request.svg);
    const auto document = [&] { return document_text("profile", profile_json(report)); };
    put(request.json ? document() : fitted(profile_text(report, style), style.width),
        request.output);
    if (request.svg) fmt::print(stderr, "moehub: wrote {}\n", printable(*request.svg));
    if (request.html.asked()) put_page(request.html, profile_page(report), document());
}

}  // namespace

Command profile_command() {
    const auto request = std::make_shared<Request>();
    std::vector<Option> options{
        {"files",
         &request->profiles.files,
         "recorded routing, FILE[:from-to], a part as fractions of its tokens; several are "
         "compared",
         "FILE",
         {.required = true, .many = true}}};
    add_profile_options(options, request->profiles);
    const std::vector<Option> own{
        {"--gpus", &request->gpus, "that experts are spread over; without it 8", "N"},
        {"--layer", &request->layer, "this one in detail, by its number", "L"},
        {"--json", &request->json, "print JSON with everything by layer"},
        {"-o,--output", &request->output, "write to this file instead", "FILE"},
        {"--svg", &request->svg, "write pictures to this file", "FILE"},
    };
    options.insert(options.end(), own.begin(), own.end());
    add_html_option(options, request->html);
    return {
        "profile",
        "What recorded routing is like: load, pairs, drift, and what placing can win",
        std::move(options),
        "Example:\n  moehub profile law.npy intent.npy --gpus 8 --layer 3 --html routing.html",
        [request] { execute(*request); },
    };
}

}  // namespace moehub
