/// `moehub model`: a whole model under several systems.
#pragma once
#include <CLI/CLI.hpp>

namespace moehub {

void add_model(CLI::App& app);

}  // namespace moehub
