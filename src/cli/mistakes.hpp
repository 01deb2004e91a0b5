/// What was wrong with the command line, in one line.
#pragma once
#include <string>

#include <CLI/CLI.hpp>

namespace moehub {

/// For an error that app.parse() threw: the unknown command or option with the nearest known
/// name, otherwise the parser's own words.
std::string explain(const CLI::App& app, const CLI::ParseError& error);

}  // namespace moehub
