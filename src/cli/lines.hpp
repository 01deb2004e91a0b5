/// `moehub lines`: how long the systems' programs are.
#pragma once
#include <CLI/CLI.hpp>

namespace moehub {

void add_lines(CLI::App& app);

}  // namespace moehub
