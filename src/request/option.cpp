#include "request/option.hpp"

#include <moehub/error.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace moehub {
namespace {

std::string key_of_names(const std::string& names) {
    std::string key = names.substr(names.rfind(',') + 1);
    key.erase(0, std::min(key.find_first_not_of('-'), key.size()));
    std::replace(key.begin(), key.end(), '-', '_');
    return key;
}

/// The keys but those of flags that are off.
std::vector<std::string> without_flags_off(const std::vector<Option>& options,
                                           std::vector<std::string> given) {
    for (const Option& option : options)
        if (auto* const* flag = std::get_if<bool*>(&option.target); flag != nullptr && !**flag)
            std::erase(given, key_of(option));
    return given;
}

}  // namespace

std::string key_of(const Option& option) {
    return key_of_names(option.names);
}

void check_rules(const std::vector<Option>& options, const std::vector<std::string>& given) {
    const std::vector<std::string> on = without_flags_off(options, given);
    const auto is_given = [&](const std::string& names) {
        return std::find(on.begin(), on.end(), key_of_names(names)) != on.end();
    };
    for (const Option& option : options) {
        if (!is_given(option.names)) continue;
        const OptionRules& rules = option.rules;
        if (!rules.needs.empty() && !is_given(rules.needs))
            throw InputError(fmt::format("{} requires {}", option.names, rules.needs));
        for (const std::string& other : rules.excludes)
            if (is_given(other))
                throw InputError(fmt::format("{} excludes {}", option.names, other));
    }
}

}  // namespace moehub
