/// The systems' programs as text.
#pragma once
#include <string>
#include <string_view>

namespace moehub::systems {

/// Of a file of src/systems; empty when there is none.
std::string program_text(std::string_view file);

/// Lines that are neither blank, nor comments, nor includes.
int lines_of_code(std::string_view text);

}  // namespace moehub::systems
