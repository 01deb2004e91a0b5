/// `moehub collective`: one collective on a machine's fabric.
#pragma once
#include <CLI/CLI.hpp>

namespace moehub {

void add_collective(CLI::App& app);

}  // namespace moehub
