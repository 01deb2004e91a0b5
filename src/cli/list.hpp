/// `moehub list`: the presets of the binary.
#pragma once
#include <CLI/CLI.hpp>

namespace moehub {

void add_list(CLI::App& app);

}  // namespace moehub
