/// Options of commands as plain data: what is typed, where it goes, what help says of it.
#pragma once
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace moehub {

/// Where a value goes, as typed: text, so that every mistake gets a message of ours. A string is
/// what stands there already unless one is typed, and help shows it; a vector takes an option that
/// is repeated; a bool is a flag.
using Target =
    std::variant<std::string*, std::optional<std::string>*, std::vector<std::string>*, bool*>;

struct OptionRules {
    bool required = false;
    bool many = false;  ///< of a vector: several values may follow one mention
    std::string needs = {};
    std::vector<std::string> excludes = {};
};

struct Option {
    std::string names;  ///< "-o,--output"; without dashes an argument known by its position
    Target target;      ///< outlives the parsing
    std::string doc;
    std::string type = {};  ///< what help calls the value; flags have none
    OptionRules rules = {};
    std::vector<std::string> values = {};  ///< what is allowed, where it can be counted up
    std::string* command_line = nullptr;   ///< gets all that was typed, fit for a shell
};

/// What it is called as a key of a study and in Python: "page_rows" of "--page-rows", "output" of
/// "-o,--output".
std::string key_of(const Option& option);

/// For what is not typed on a command line, whose parser sees to it: throws InputError when one of
/// the `given` keys lacks one that it needs, or stands with one that excludes it. A flag that is
/// off is not given.
void check_rules(const std::vector<Option>& options, const std::vector<std::string>& given);

}  // namespace moehub
