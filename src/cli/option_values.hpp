/// What may stand behind an option, for shells that complete it.
#pragma once
#include "cli/command.hpp"

#include <string>
#include <vector>

namespace moehub {

struct OptionValues {
    std::vector<std::string> words;  ///< names of presets, or what is allowed
    bool files = false;              ///< files as well, or alone
    bool list = false;               ///< several with commas between
};

/// An option's own `values`, or the alternatives of its type ("packet|row"), or the presets that
/// options of its name take in every command.
OptionValues values_of(const Option& option);

/// "-o,--output" as {"-o", "--output"}; an argument has its name alone.
std::vector<std::string> names_of(const Option& option);
bool is_flag(const Option& option);
bool is_argument(const Option& option);  ///< known by its position
/// What stands there unless something is typed; empty: nothing.
std::string default_of(const Option& option);

}  // namespace moehub
