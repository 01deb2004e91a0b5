/// What tables of systems and programs share: systems.cpp, tp_systems.cpp.
#pragma once
#include "systems/needs.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace moehub::systems {

using Names = std::vector<std::string_view>;

/// A row of a table of programs, apart from how it is run.
struct ProgramRow {
    std::string_view name;
    Names keys;  ///< parameters it reads
    Needs needs;
};

/// Throws InputError: `what` with the program's name in it, and the names that there are.
[[noreturn]] void throw_unknown_program(const SystemSpec& system, const char* what,
                                        const Names& names);

/// The program's row. Throws as throw_unknown_program() does where there is none.
template <class Row>
const Row& row_of(const std::vector<Row>& table, const SystemSpec& system, const char* what) {
    Names names;
    for (const Row& row : table) {
        if (row.name == system.program && !system.own) return row;
        names.push_back(row.name);
    }
    throw_unknown_program(system, what, names);
}
/// Throws InputError when a parameter was changed that is neither the program's nor `everyones`.
void check_keys(const SystemSpec& system, const ProgramRow& program, const Names& everyones);

/// What is told of presets, "name name …", whose programs are in files of their names in a folder.
std::vector<SystemInfo> infos_of(std::string_view names, const std::string& folder);

/// The text of a file of src/systems; empty when there is no such file.
std::string program_text(std::string_view file);

/// Lines that are neither blank, nor comments, nor includes.
int lines_of_code(std::string_view text);

}  // namespace moehub::systems
