/// `--html`: a report page beside what a command prints.
#pragma once
#include "cli/command.hpp"
#include "report/page.hpp"

#include <optional>
#include <string>
#include <vector>

namespace moehub {

struct HtmlOutput {
    std::optional<std::string> path;
    std::string command;  ///< the whole line that was typed

    bool asked() const { return path.has_value(); }
};

void add_html_option(std::vector<Option>& options, HtmlOutput& html);

/// Before long work. Throws InputError when the page could not be written, or would replace the
/// command's other output.
void require_writable(const HtmlOutput& html, const std::string& output);

/// Writes the page with the command that made it and `document`, what the command prints with
/// --json; says so on standard error.
void put_page(const HtmlOutput& html, Page page, const std::string& document);

}  // namespace moehub
