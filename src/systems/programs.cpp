#include "systems/programs.hpp"

#include "base/nearest.hpp"
#include "base/quantity.hpp"
#include "model/records.hpp"

#include <moehub/error.hpp>
#include <moehub/presets.hpp>

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub::systems {

void throw_unknown_program(const SystemSpec& system, const char* what, const Names& names) {
    const std::vector<std::string> known(names.begin(), names.end());
    throw InputError(fmt::format("system {}: {}{}, allowed: {}", system.name,
                                 fmt::format(fmt::runtime(what), quoted(system.program)),
                                 did_you_mean(system.program, known), fmt::join(names, ", ")));
}

void check_keys(const SystemSpec& system, const ProgramRow& program, const Names& everyones) {
    for (const std::string& key : changed_keys(system)) {
        const auto has = [&](const Names& keys) {
            return std::find(keys.begin(), keys.end(), key) != keys.end();
        };
        if (has(everyones) || has(program.keys)) continue;
        throw InputError(fmt::format(
            "system {}: {} is not a parameter of the program {}{}", system.name, key, program.name,
            program.keys.empty() ? ", which has none"
                                 : fmt::format("; it has: {}", fmt::join(program.keys, ", "))));
    }
}

SystemInfo info_of(std::string_view name, const std::string& folder) {
    const SystemSpec system = load_system(std::string(name));
    std::string file = system.program;
    std::replace_if(
        file.begin(), file.end(), [](char letter) { return letter == '-' || letter == '+'; }, '_');
    SystemInfo info;
    info.name = system.name;
    info.title = system.title;
    info.program = program_text(folder + "/" + file + ".cpp");
    info.lines = lines_of_code(info.program);
    return info;
}

std::vector<SystemInfo> infos_of(std::string_view names, const std::string& folder) {
    std::vector<SystemInfo> list;
    while (!names.empty()) {
        const std::string_view name = names.substr(0, names.find(' '));
        list.push_back(info_of(name, folder));
        names.remove_prefix(std::min(name.size() + 1, names.size()));
    }
    return list;
}

int lines_of_code(std::string_view text) {
    int count = 0;
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        std::string_view line = text.substr(0, end);
        text.remove_prefix(end == text.npos ? text.size() : end + 1);
        line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
        if (!line.empty() && !line.starts_with("//") && !line.starts_with("#")) ++count;
    }
    return count;
}

}  // namespace moehub::systems
