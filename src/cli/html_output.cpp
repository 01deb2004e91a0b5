#include "cli/html_output.hpp"

#include "base/utf8.hpp"
#include "cli/output.hpp"
#include "report/page_parts.hpp"
#include "request/profile_arguments.hpp"

#include <moehub/error.hpp>

#include <fmt/format.h>

namespace moehub {

void require_writable(const HtmlOutput& html, const std::string& output) {
    if (!html.asked()) return;
    if (chart_library().empty())
        throw InputError(
            "--html: this build has no charts, allowed: a build that was configured with npm, or "
            "with -DMOEHUB_ECHARTS=/path/echarts.min.js");
    if (html.path->empty() || *html.path == "-")
        throw InputError(fmt::format("--html: found \"{}\", allowed: a file", *html.path));
    if (!output.empty() && same_file(output, *html.path))
        throw InputError("--html: found the file of another output, allowed: its own");
    require_writable(*html.path);
}

void put_page(const HtmlOutput& html, Page page, const std::string& document) {
    page.command = html.command;
    page.document = document;
    put(page_html(page), *html.path);
    fmt::print(stderr, "moehub: wrote {}\n", printable(*html.path));
}

}  // namespace moehub
