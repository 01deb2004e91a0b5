#include "base/utf8.hpp"
#include "report/answer_forms.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

namespace moehub {
namespace {

/// Layouts and lists of options have no blanks, and may be broken after their commas.
std::string breakable(std::string html) {
    for (std::size_t at = 0; (at = html.find(',', at)) != std::string::npos; ++at)
        if (at + 1 < html.size() && html[at + 1] != ' ') html.insert(at + 1, "<wbr>");
    return html;
}

std::string cell(std::string_view tag, const Column& column, const std::string& text) {
    constexpr std::size_t kLong = 32;  ///< is text to be wrapped, and no name
    const bool left = column.show.is_text();
    const bool list = text.find(", ") != std::string::npos;
    const char* const kind = !left                 ? ""
                             : text.size() > kLong ? " class=\"left text\""
                             : list                ? " class=\"left list\""
                                                   : " class=\"left\"";
    return fmt::format("<{}{}{}>{}</{}>", tag, tag == "th" ? " scope=\"col\"" : "", kind,
                       left ? breakable(escaped(text)) : escaped(text), tag);
}

/// `name` is what it is called for those who do not see it, where it has no caption.
std::string table_html(const Table& table, const std::string& name) {
    if (table.rows.empty() || std::none_of(table.columns.begin(), table.columns.end(),
                                           [](const Column& column) { return column.is_read(); }))
        return "";
    const std::string label = escaped(table.caption.empty() ? name : table.caption);
    // Reachable by keyboard, as it may have to be scrolled.
    std::string out = fmt::format(
        "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"{}\"><table>\n", label);
    if (!table.caption.empty()) out += fmt::format("<caption><span>{}</span></caption>\n", label);
    out += "<thead><tr>";
    for (const Column& column : table.columns)
        if (column.is_read()) out += cell("th", column, column.words);
    out += "</tr></thead>\n<tbody>\n";
    for (const auto& row : table.rows) {
        out += "<tr>";
        for (std::size_t i = 0; i < row.size(); ++i)
            if (table.columns[i].is_read())
                out += cell("td", table.columns[i], shown(row[i], table.columns[i].show));
        out += "</tr>\n";
    }
    return out + "</tbody></table></div>\n";
}

std::string facts_html(const Facts& facts, const std::string& name) {
    Table table{"", "", {{""}, {""}}, {}};
    for (const auto& [column, value] : facts.list)
        if (column.is_read() && !shown(value, column.show).empty())
            table.rows.push_back({column.words, shown(value, column.show)});
    return table.rows.empty() ? "" : table_html(table, name);
}

/// What the script fills with the chart of that number.
std::string figure_html(const Chart& chart, std::size_t number) {
    return fmt::format(
        "<figure>\n<figcaption>{}</figcaption>\n<div class=\"controls\"></div>\n"
        "<div class=\"chart\" id=\"chart-{}\" role=\"img\" aria-label=\"{}\"></div>\n</figure>\n",
        escaped(title_of(chart)), number, escaped(chart_words(chart)));
}

/// Inside <script>, where only "</" and "<!--" mean something.
std::string script_text(std::string text) {
    for (std::size_t at = 0; (at = text.find('<', at)) != std::string::npos; ++at)
        text.replace(at, 1, "\\u003c");
    return text;
}

/// The text as it is, line by line.
std::string preformatted(std::string_view text, std::string_view attributes = "") {
    std::string out = fmt::format("<pre{} tabindex=\"0\">", attributes);
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        out += escaped(text.substr(0, end)) + "\n";
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return out + "</pre>\n";
}

std::string folded(std::string_view summary, const std::string& html,
                   std::string_view attributes = "") {
    return fmt::format("<details{}>\n<summary>{}</summary>\n{}</details>\n", attributes,
                       escaped(summary), html);
}

struct Body {
    std::string html;
    Json charts = Json::array();
    std::size_t count = 0;
    bool with_charts = true;

    void add(const Table& table, const std::string& name) { html += table_html(table, name); }
    void add(const Facts& facts, const std::string& name) { html += facts_html(facts, name); }
    void add(const Lines& lines, const std::string&) { html += preformatted(lines.text); }
    template <class Picture>
    void add(const Picture& picture, const std::string&) {
        if (!with_charts) return;
        const Chart chart = picture;
        html += figure_html(chart, count++);
        charts.push_back(chart_json(chart));
    }
};

/// Texts for the terminal are cut into lines.
std::string one_line(std::string text) {
    while (text.ends_with('\n')) text.pop_back();
    std::replace(text.begin(), text.end(), '\n', ' ');
    return text;
}

std::string paragraphs(const std::vector<std::string>& lines, std::string_view kind) {
    std::string out;
    for (const std::string& line : lines)
        if (!line.empty())
            out += fmt::format("<p class=\"{}\">{}</p>\n", kind, escaped(one_line(line)));
    return out;
}

/// One with nothing in it is left out.
void add_section(Body& body, const Section& section) {
    std::string before = std::exchange(body.html, "");
    if (!section.sentences.empty()) {
        body.html += "<ul>\n";
        for (const std::string& one : section.sentences)
            body.html += fmt::format("<li>{}</li>\n", escaped(one_line(one)));
        body.html += "</ul>\n";
    }
    for (const Block& block : section.blocks)
        if (is_for(block.reader, Reader::page))
            std::visit([&](const auto& one) { body.add(one, section.heading); }, block.content);
    for (const Note& one : section.notes)
        if (is_for(one.reader, Reader::page)) body.html += paragraphs({one.text}, "note");
    const std::string inside = std::exchange(body.html, std::move(before));
    if (inside.empty()) return;
    const std::string heading =
        section.heading.empty() ? "" : fmt::format("<h2>{}</h2>\n", escaped(section.heading));
    body.html += "<section>\n" + heading + inside + "</section>\n";
}

/// How it was made: the command, what it was asked, and all it gave.
std::string origin_html(const Answer& answer, const std::string& command) {
    std::string out = "<section>\n<h2>How this page was made</h2>\n";
    if (!command.empty()) out += "<p>The command:</p>\n" + preformatted(command, " id=\"command\"");
    for (const Configured& one : answer.configuration)
        out += folded(one.name, preformatted(one.text()));
    out += folded("All numbers, as the command prints them with --json",
                  "<p><button type=\"button\" id=\"save\">Save as report.json</button></p>\n"
                  "<pre tabindex=\"0\"></pre>\n",
                  " id=\"data\"");
    return out +
           folded("Charts by Apache ECharts, Apache License 2.0", preformatted(chart_licence())) +
           "</section>\n";
}

}  // namespace

std::string page_html(const Answer& answer, const std::string& command) {
    Body body;
    for (const Section& section : answer.sections) add_section(body, section);
    const std::string title = escaped(answer.title);
    std::string out = fmt::format(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n"
        "<header>\n<h1>{}</h1>\n<button type=\"button\" id=\"theme\">Dark</button>\n</header>\n"
        "<main>\n{}<noscript><p class=\"note\">Charts need scripts, which this browser does not "
        "run; all tables are here.</p></noscript>\n",
        title, page_style(), title, paragraphs(answer.lead, "lead"));
    out += body.html + origin_html(answer, command) + "</main>\n";
    out += "<script type=\"application/json\" id=\"charts\">" + script_text(body.charts.dump(-1)) +
           "</script>\n";
    out += "<script type=\"application/json\" id=\"document\">" + script_text(json_text(answer)) +
           "</script>\n";
    if (body.count > 0)
        out += fmt::format("<script type=\"application/gzip\" id=\"library\">{}</script>\n",
                           chart_library());
    out += fmt::format("<script>{}</script>\n", page_script());
    return out + "</body>\n</html>\n";
}

std::string notebook_html(const Answer& answer) {
    Body body;
    body.with_charts = false;
    for (const Section& section : answer.sections) add_section(body, section);
    return paragraphs(answer.lead, "lead") + body.html;
}

std::string escaped(std::string_view text) {
    const std::string safe = printable(text);
    std::string out;
    for (std::size_t at = 0; at < safe.size(); ++at) {
        constexpr std::string_view kMarkup = "&<>\"'";
        constexpr std::array<std::string_view, 5> kEntities{"&amp;", "&lt;", "&gt;", "&quot;",
                                                            "&#39;"};
        const std::size_t found = kMarkup.find(safe[at]);
        // U+FFFE and U+FFFF are UTF-8, but not XML.
        const bool no_xml = safe.compare(at, 2, "\xEF\xBF") == 0 && at + 2 < safe.size() &&
                            static_cast<unsigned char>(safe[at + 2]) >= 0xBE;
        if (found != std::string_view::npos)
            out += kEntities[found];
        else if (no_xml)
            out += "\xEF\xBF\xBD", at += 2;
        else
            out += safe[at];
    }
    return out;
}

}  // namespace moehub
