#include "cli/html_output.hpp"

#include "base/utf8.hpp"
#include "cli/output.hpp"

#include <fmt/format.h>

namespace moehub {

void put_page(const HtmlOutput& html, Page page, const std::string& document) {
    page.command = html.command;
    page.document = document;
    put(page_html(page), *html.path);
    fmt::print(stderr, "moehub: wrote {}\n", printable(*html.path));
}

}  // namespace moehub
