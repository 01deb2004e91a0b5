/// `moehub run`: one system on one layer, with what its units counted.
#pragma once
#include <CLI/CLI.hpp>

namespace moehub {

void add_run(CLI::App& app);

}  // namespace moehub
