/// `--html`: a report page beside what a command prints.
#pragma once
#include "request/option.hpp"

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

}  // namespace moehub
