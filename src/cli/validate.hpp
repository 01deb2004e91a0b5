/// `moehub validate`: how far the model is from a file of measurements.
#pragma once
#include <CLI/CLI.hpp>

namespace moehub {

void add_validate(CLI::App& app);

}  // namespace moehub
