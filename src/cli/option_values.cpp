#include "cli/option_values.hpp"

#include "request/values.hpp"

#include <moehub/presets.hpp>
#include <moehub/tp.hpp>

#include <algorithm>

namespace moehub {
namespace {

/// Options that name presets, the same in every command; a TOML file stands for one.
constexpr struct {
    std::string_view option;
    std::string_view kind;
    bool list;
} kPresets[] = {
    {"--machine", "machines", false}, {"--model", "models", false},
    {"--models", "models", true},     {"--gpu", "gpus", false},
    {"--system", "systems", true},    {"--systems", "systems", true},
    {"--baseline", "systems", false}, {"--attention-system", "systems", false},
    {"--simulate", "systems", true},  {"--engine", "engines", false},
    {"--trainer", "trainers", false}, {"--shapes", "shapes", false},
    {"system", "systems", false},
};

/// Types of values that are files.
constexpr std::string_view kFiles[] = {"FILE", "CSV", "TOML", "DB", "STUDY", "NAME|FILE"};

std::vector<std::string> alternatives(const std::string& type) {
    std::vector<std::string> words;
    if (type.find('|') == type.npos) return words;
    for (std::size_t begin = 0; begin <= type.size();) {
        const std::size_t end = std::min(type.find('|', begin), type.size());
        words.push_back(type.substr(begin, end - begin));
        begin = end + 1;
    }
    return words;
}

}  // namespace

std::vector<std::string> names_of(const Option& option) {
    return listed(option.names);
}

bool is_flag(const Option& option) {
    return std::holds_alternative<bool*>(option.target);
}

bool is_argument(const Option& option) {
    return !option.names.starts_with('-');
}

std::string default_of(const Option& option) {
    const auto* const text = std::get_if<std::string*>(&option.target);
    return text == nullptr ? "" : **text;
}

OptionValues values_of(const Option& option) {
    OptionValues values;
    if (is_flag(option)) return values;
    if (!option.values.empty()) {
        values.words = option.values;
        return values;
    }
    for (const std::string& name : names_of(option))
        for (const auto& [known, kind, list] : kPresets)
            if (name == known) return {preset_names(std::string(kind)), true, list};
    values.files = std::find(std::begin(kFiles), std::end(kFiles), option.type) != std::end(kFiles);
    if (!values.files) values.words = alternatives(option.type);
    return values;
}

}  // namespace moehub
