/// `moehub place`: experts on GPUs, from recorded routing.
#pragma once
#include <CLI/CLI.hpp>

namespace moehub {

void add_place(CLI::App& app);

}  // namespace moehub
