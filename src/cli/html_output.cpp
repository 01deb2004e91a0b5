#include "cli/html_output.hpp"

#include "base/utf8.hpp"
#include "report/page_parts.hpp"

#include <moehub/error.hpp>

#include <fmt/format.h>

namespace moehub {

OutputFile html_file(const HtmlOutput& html) {
    if (html.asked() && chart_library().empty())
        throw InputError(
            "--html: this build has no charts, allowed: a build that was configured with npm, or "
            "with -DMOEHUB_ECHARTS=/path/echarts.min.js");
    return {"--html", html.path};
}

void put_page(const HtmlOutput& html, Page page, const std::string& document) {
    page.command = html.command;
    page.document = document;
    put(page_html(page), *html.path);
    fmt::print(stderr, "moehub: wrote {}\n", printable(*html.path));
}

}  // namespace moehub
