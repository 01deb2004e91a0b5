/// `moehub profile`: what recorded routing is like.
#pragma once
#include <CLI/CLI.hpp>

namespace moehub {

void add_profile(CLI::App& app);

}  // namespace moehub
