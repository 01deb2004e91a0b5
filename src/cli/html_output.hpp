/// Pages that `--html` asks for, written.
#pragma once
#include "report/page.hpp"
#include "request/html_output.hpp"

#include <string>

namespace moehub {

/// Writes the page with the command that made it and `document`, what the command prints with
/// --json; says so on standard error.
void put_page(const HtmlOutput& html, Page page, const std::string& document);

}  // namespace moehub
