#include "request/profile_arguments.hpp"

#include "base/utf8.hpp"
#include "request/values.hpp"

#include <moehub/presets.hpp>

#include <filesystem>

namespace moehub {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMostExperts = 65534;
constexpr std::int64_t kMostLayers = 65535;

int int_of(std::string_view option, const std::optional<std::string>& text, std::int64_t most) {
    return text ? static_cast<int>(count_of(option, *text, {1, most})) : 0;
}

ArrayKind kind_of_array(const std::optional<std::string>& name) {
    if (!name) return ArrayKind::by_itself;
    std::optional<ArrayKind> kind;
    if (*name == "tokens") kind = ArrayKind::tokens;
    if (*name == "counts") kind = ArrayKind::counts;
    return named("--profile-kind", *name, kind, {"tokens", "counts"});
}

Model model_of(const std::string& name) {
    Model model = load_model(name);
    if (model.experts == 0)
        throw InputError(
            fmt::format("--model: found {}, which has no experts, allowed: a model with experts",
                        moehub::quoted(name)));
    return model;
}

void check_against(const Model& model, const Profile& profile) {
    const auto fail = [&](std::string_view what, int found, int allowed) {
        throw InputError(fmt::format("{}: {}: found {}, allowed: {}, as the model has",
                                     printable(profile.name), what, found, allowed));
    };
    if (profile.experts != model.experts) fail("experts", profile.experts, model.experts);
    if (profile.top_k > 0 && profile.top_k != model.top_k)
        fail("top-k", profile.top_k, model.top_k);
    if (profile.layers > model.moe_layers() + model.mtp_layers)
        fail("layers", profile.layers, model.moe_layers());
}

std::vector<ProfileSource> sources_of(const std::vector<std::string>& texts) {
    std::vector<ProfileSource> sources;
    for (const std::string& text : texts) sources.push_back(parse_profile_source(text));
    return sources;
}

/// As written to: links followed, whether it is there or not.
fs::path target_of(const std::string& path) {
    std::error_code ignored;
    const fs::path whole = fs::absolute(path, ignored);
    const fs::path target = fs::weakly_canonical(whole, ignored);
    return target.empty() ? whole.lexically_normal() : target;
}

}  // namespace

bool same_file(const std::string& a, const std::string& b) {
    std::error_code absent;
    return fs::equivalent(a, b, absent) || target_of(a) == target_of(b);
}

void check_output_apart(std::string_view option, const std::string& output,
                        const std::vector<std::string>& profiles) {
    if (output.empty()) return;
    const auto refuse = [&](std::string_view what, std::string_view allowed) {
        throw InputError(fmt::format("{}: found {}, {}, allowed: {}", option,
                                     moehub::quoted(output), what, allowed));
    };
    for (const std::string& profile : profiles) {
        const std::string path = parse_profile_source(profile).path;
        std::error_code absent;
        if (same_file(path, output)) refuse("which is a profile", "another file");
        if (fs::is_directory(path, absent) &&
            fs::equivalent(path, target_of(output).parent_path(), absent))
            refuse("which is in the folder of a profile", "a file elsewhere");
    }
}

void add_profile_options(std::vector<Option>& options, ProfileArguments& arguments) {
    const std::vector<Option> profile{
        {"--experts", &arguments.experts,
         "of a layer, where the file does not say; without it the largest found", "N"},
        {"--model",
         &arguments.model,
         "preset or TOML file (moehub list models): its experts, and layers by its numbers",
         "M",
         {.excludes = {"--experts"}}},
        {"--profile-kind",
         &arguments.kind,
         "what an array of three dimensions is: tokens, [token, layer, k], or counts, [step, "
         "layer, expert]; without it found out",
         "KIND",
         {},
         {"tokens", "counts"}},
        {"--layers", &arguments.layers,
         "of ids, for files that do not say (base64 without a shape)", "N"},
        {"--top-k", &arguments.top_k, "likewise", "K"},
    };
    options.insert(options.end(), profile.begin(), profile.end());
}

std::size_t profile_count(const ProfileArguments& arguments) {
    return arguments.given.size() + arguments.files.size() + (arguments.ranks.empty() ? 0 : 1);
}

std::vector<Profile> load_profiles(const ProfileArguments& arguments) {
    ProfileOptions options;
    options.experts = int_of("--experts", arguments.experts, kMostExperts);
    options.layers = int_of("--layers", arguments.layers, kMostLayers);
    options.top_k = int_of("--top-k", arguments.top_k, kMostExperts);
    options.kind = kind_of_array(arguments.kind);
    std::optional<Model> model;
    if (arguments.model) {
        model = model_of(*arguments.model);
        options.experts = model->experts;
        options.dense_layers = model->dense_layers;
    }
    // All names before any file: reading may take long.
    const std::vector<ProfileSource> ranks = sources_of(arguments.ranks);
    const std::vector<ProfileSource> sources = sources_of(arguments.files);
    std::vector<Profile> profiles = arguments.given;
    if (!ranks.empty()) profiles.push_back(read_profile(ranks, options));
    for (const ProfileSource& source : sources) profiles.push_back(read_profile(source, options));
    profiles.insert(profiles.end(), arguments.held_out.begin(), arguments.held_out.end());
    if (model)
        for (const Profile& profile : profiles) check_against(*model, profile);
    check_together(profiles);
    return profiles;
}

}  // namespace moehub
