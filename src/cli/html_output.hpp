/// Pages that `--html` asks for, written.
#pragma once
#include "cli/output.hpp"
#include "report/page.hpp"
#include "request/html_output.hpp"

#include <string>

namespace moehub {

/// For require_writable(). Throws InputError where this build cannot draw.
OutputFile html_file(const HtmlOutput& html);

/// Writes the page with the command that made it and `document`, what the command prints with
/// --json; says so on standard error.
void put_page(const HtmlOutput& html, Page page, const std::string& document);

}  // namespace moehub
