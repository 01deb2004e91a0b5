#include "request/html_output.hpp"

namespace moehub {

void add_html_option(std::vector<Option>& options, HtmlOutput& html) {
    options.push_back({"--html",
                       &html.path,
                       "write a page with charts and tables, too, for any browser",
                       "FILE",
                       {},
                       {},
                       &html.command});
}

}  // namespace moehub
