/// Which moehub this is. What a version promises stands in CONTRIBUTING.md.
#pragma once
#include <string_view>

namespace moehub {

/// "MAJOR.MINOR.PATCH", as project(moehub VERSION …) of CMakeLists.txt says.
std::string_view version();

}  // namespace moehub
