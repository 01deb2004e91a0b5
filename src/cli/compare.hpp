/// `moehub compare`: systems side by side on one layer.
#pragma once
#include <CLI/CLI.hpp>

namespace moehub {

void add_compare(CLI::App& app);

}  // namespace moehub
