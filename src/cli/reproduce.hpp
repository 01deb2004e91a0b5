/// `moehub reproduce`: a paper's published numbers beside the simulator's.
#pragma once
#include <CLI/CLI.hpp>

namespace moehub {

void add_reproduce(CLI::App& app);

}  // namespace moehub
