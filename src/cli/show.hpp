/// `moehub show NAME`: one machine, model or GPU in full.
#pragma once
#include <CLI/CLI.hpp>

namespace moehub {

void add_show(CLI::App& app);

}  // namespace moehub
