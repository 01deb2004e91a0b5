#include "request/point_arguments.hpp"

#include "base/nearest.hpp"
#include "base/quantity.hpp"
#include "model/records.hpp"
#include "request/values.hpp"

#include <algorithm>
#include <set>

namespace moehub {
namespace {

constexpr std::string_view kSystem = "system.";

/// Options that say where a result goes or how it is shown, not what it is.
constexpr std::string_view kNoKeys[] = {"set", "json", "output", "layer_type", "seed", "html"};

std::vector<Option> keys_among(std::vector<Option> options) {
    std::erase_if(options, [](const Option& option) {
        return std::find(std::begin(kNoKeys), std::end(kNoKeys), key_of(option)) !=
               std::end(kNoKeys);
    });
    return options;
}

/// What stands in it; nothing for an option that was not given, or a flag that is off.
std::optional<std::string> value_of(const Option& option) {
    if (auto* const* flag = std::get_if<bool*>(&option.target))
        return **flag ? std::optional<std::string>("true") : std::nullopt;
    if (auto* const* maybe = std::get_if<std::optional<std::string>*>(&option.target))
        return **maybe;
    if (auto* const* text = std::get_if<std::string*>(&option.target)) return **text;
    return std::nullopt;
}

void set(const Option& option, const std::string& key, const std::string& value) {
    if (auto* const* flag = std::get_if<bool*>(&option.target)) {
        if (value != "true" && value != "false")
            throw InputError(
                fmt::format("--{}: found {}, allowed: true, false", key, quoted(value)));
        **flag = value == "true";
    } else if (auto* const* maybe = std::get_if<std::optional<std::string>*>(&option.target)) {
        **maybe = value;
    } else if (auto* const* text = std::get_if<std::string*>(&option.target)) {
        **text = value;
    }
}

template <class Noun>
void add_fields(std::vector<std::string>& known, const std::string& prefix) {
    Noun noun;
    for (const Field& field : fields_of(noun)) known.push_back(prefix + field.key);
}

std::vector<std::string> known_keys(const Study& study) {
    std::vector<std::string> known;
    ModelArguments arguments;
    for (const Option& option : point_options(study.kind, arguments))
        known.push_back(key_of(option));
    for (const char* part : {"routing.spread", "routing.transition"}) known.emplace_back(part);
    add_fields<Machine>(known, "");
    add_fields<Model>(known, "model.");
    for (const std::string& system : study.systems)
        add_fields<SystemSpec>(known, fmt::format("{}{}.", kSystem, load_system(system).name));
    return known;
}

/// "system.moe-hub.packet" of another system than the point's.
bool is_anothers(const std::string& key, const std::string& system) {
    return key.starts_with(kSystem) &&
           !key.starts_with(fmt::format("{}{}.", kSystem, load_system(system).name));
}

/// "normal:0.1,transition:0.7" with one of its numbers replaced.
std::string with_part(const std::string& routing, std::string_view part, const std::string& value) {
    constexpr std::string_view kTransition = ",transition:";
    const std::size_t comma = std::min(routing.find(kTransition), routing.size());
    std::string shares = routing.substr(0, comma);
    std::string transition = routing.substr(comma);
    if (part == "spread") shares = shares.substr(0, shares.find(':')) + ":" + value;
    if (part == "transition") transition = std::string(kTransition) + value;
    return shares + transition;
}

struct Setter {
    std::vector<Option> options;
    ModelArguments& arguments;
    const std::string& system;

    void set(const std::string& key, const std::string& value) const {
        const auto option = std::find_if(options.begin(), options.end(),
                                         [&](const Option& one) { return key_of(one) == key; });
        if (option != options.end()) return moehub::set(*option, key, value);
        if (key.starts_with("routing.")) return;  // with_parts()
        if (!is_anothers(key, system))
            arguments.layer.settings.push_back(fmt::format("{}={}", key, value));
    }
};

}  // namespace

std::vector<Option> point_options(StudyKind kind, ModelArguments& arguments) {
    std::vector<Option> options;
    add_layer_options(options, arguments.layer);
    if (kind == StudyKind::tp) {
        add_layer_type_options(options, arguments.layer);
        return keys_among(std::move(options));
    }
    add_software_options(options, arguments.layer);
    if (kind == StudyKind::layer) add_pass_option(options, arguments.layer);
    if (kind == StudyKind::model) add_model_options(options, arguments);
    return keys_among(std::move(options));
}

std::vector<Option> point_options(ModelArguments& arguments) {
    std::vector<Option> options = point_options(StudyKind::layer, arguments);
    std::vector<Option> more;
    add_layer_type_options(more, arguments.layer);
    add_model_options(more, arguments);
    more = keys_among(std::move(more));
    options.insert(options.end(), more.begin(), more.end());
    return options;
}

std::vector<StudySetting> typed_settings(const ModelArguments& typed) {
    ModelArguments copy = typed;
    ModelArguments usual;
    const std::vector<Option> now = point_options(copy);
    const std::vector<Option> before = point_options(usual);
    std::vector<StudySetting> settings;
    for (std::size_t i = 0; i < now.size(); ++i) {
        const auto value = value_of(now[i]);
        if (!value || value == value_of(before[i])) continue;
        settings.push_back({key_of(now[i]), *value, now[i].names});
    }
    for (const std::string& one : typed.layer.settings) {
        const std::size_t equals = std::min(one.find('='), one.size());
        if (equals == 0 || equals == one.size())
            throw InputError(
                fmt::format("--set: found {}, allowed: KEY=VALUE", moehub::quoted(one)));
        settings.push_back({one.substr(0, equals), one.substr(equals + 1), "--set"});
    }
    return settings;
}

void check_keys(const Study& study) {
    const std::vector<std::string> known = known_keys(study);
    const std::set<std::string> allowed(known.begin(), known.end());
    const auto require = [&](const std::string& key, const std::string& where) {
        if (allowed.contains(key)) return;
        if (key == "seed")
            throw InputError(where + ": seed: found as a key, allowed: seeds, of the whole study");
        throw InputError(
            fmt::format("{}: unknown key {}{}", where, quoted(key), did_you_mean(key, known)));
    };
    for (const StudySetting& setting : study.fixed) require(setting.key, setting.where);
    for (const SweepAxis& axis : study.axes)
        for (const std::string& key : axis.keys) require(key, axis.where);
}

ModelArguments arguments_of(const Study& study, const SweepPoint& point) {
    ModelArguments arguments;
    const Setter setter{point_options(study.kind, arguments), arguments, point.system};
    const std::vector<std::string> keys = keys_of(study);
    const auto each = [&](const auto& take) {
        for (const StudySetting& setting : study.fixed) take(setting.key, setting.value);
        for (std::size_t i = 0; i < keys.size(); ++i) take(keys[i], point.values[i]);
    };
    std::vector<std::string> given;
    each([&](const std::string& key, const std::string& value) {
        setter.set(key, value);
        given.push_back(key);
    });
    check_rules(setter.options, given);
    each([&](const std::string& key, const std::string& value) {
        for (const std::string_view part : {"spread", "transition"})
            if (key == fmt::format("routing.{}", part))
                arguments.layer.routing =
                    with_part(arguments.layer.routing.value_or("uniform"), part, value);
    });
    if (!point.seed.empty()) arguments.layer.seed = point.seed;
    if (study.kind == StudyKind::tp) arguments.layer.layer_type = "tp";
    return arguments;
}

}  // namespace moehub
