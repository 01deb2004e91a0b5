/// What may stand behind an option, for shells that complete it.
#pragma once
#include "answers/option.hpp"

#include <string>
#include <vector>

namespace moehub {

struct OptionValues {
    std::vector<std::string> words;  ///< names of presets, or what is allowed
    bool files = false;              ///< files as well, or alone
    bool list = false;               ///< several with commas between
};
OptionValues values_of(const Option& option);

bool is_flag(const Option& option);

}  // namespace moehub
