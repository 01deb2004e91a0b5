#include "report/profile_drawing.hpp"
#include "report/profile_tables.hpp"

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr int kBusiest = 16;

constexpr const char* kStyle = R"(
body { font: 15px/1.5 Helvetica, Arial, sans-serif; color: #222; margin: 2em auto; padding: 0 1.5em;
       max-width: 1240px; }
h1 { font-size: 1.5em; } h2 { font-size: 1.2em; margin-top: 2em; } h3 { font-size: 1em; }
h1, h2, h3 { overflow-wrap: anywhere; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 13px; }
th { border-bottom: 1px solid #888; } th, td { padding: 2px 10px; text-align: right; }
.left { text-align: left; white-space: pre; } tbody tr:hover { background: #f3efe6; }
p.note { color: #666; font-size: 13px; margin: 0.3em 0; }
)";

std::string cell(std::string_view tag, const Table::Column& column, const std::string& text) {
    return fmt::format("<{}{}>{}</{}>", tag,
                       column.align == Table::Align::left ? " class=\"left\"" : "", escaped(text),
                       tag);
}

std::string table_html(const ReportTable& table) {
    std::string out = "<div class=\"wide\"><table>\n<thead><tr>";
    for (const Table::Column& column : table.columns) out += cell("th", column, column.title);
    out += "</tr></thead>\n<tbody>\n";
    for (const auto& row : table.rows) {
        out += "<tr>";
        for (std::size_t i = 0; i < row.size(); ++i) out += cell("td", table.columns[i], row[i]);
        out += "</tr>\n";
    }
    return out + "</tbody></table></div>\n";
}

std::string sentences_html(const ProfileReport& report) {
    std::string out = "<ul>\n";
    for (const std::string& sentence : profile_sentences(report))
        out += fmt::format("<li>{}</li>\n", escaped(sentence));
    return out + "</ul>\n";
}

std::string layer_html(const ProfileSummary& summary, int layer) {
    const LayerSummary& one = summary.layers[static_cast<std::size_t>(layer)];
    std::string out = fmt::format("<h3>Busiest experts of layer {}</h3>\n", one.number) +
                      table_html(busiest_table(summary, layer, kBusiest, 24));
    if (const ReportTable pairs = pairs_table(one); !pairs.rows.empty())
        out += fmt::format("<h3>Chosen together in layer {}, farthest above chance</h3>\n",
                           one.number) +
               table_html(pairs);
    return out;
}

std::string profile_of(const ProfileReport& report, std::size_t profile) {
    const ProfileSummary& summary = report.profiles[profile];
    std::string out = fmt::format("<h2>{}</h2>\n<p>{}</p>\n", escaped(name_text(report, profile)),
                                  escaped(size_text(summary))) +
                      table_html(overview_table(summary)) +
                      layer_html(summary, report.pictured_layer()) + "<h3>By layer</h3>\n" +
                      table_html(layers_table(summary));
    for (const std::string& line : layers_legend(summary))
        out += fmt::format("<p class=\"note\">{}</p>\n", escaped(line));
    return out;
}

}  // namespace

std::string profile_html(const ProfileReport& report) {
    std::string out = fmt::format(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width\">\n<title>Recorded routing: "
        "{}</title>\n"
        "<style>{}</style>\n</head>\n<body>\n<h1>Recorded routing</h1>\n",
        escaped(report.profiles.front().name), kStyle);
    out += "<h2>What it means for placing</h2>\n" + sentences_html(report);
    out += "<h2>Pictures</h2>\n<div class=\"wide\">\n" + profile_drawing(report, true) + "</div>\n";
    if (!report.differences.empty())
        out +=
            "<h2>Load that differs</h2>\n<p>% of the rows, mean over layers; in brackets: by "
            "chance</p>\n" +
            table_html(differences_table(report));
    for (std::size_t i = 0; i < report.profiles.size(); ++i) out += profile_of(report, i);
    return out + "</body>\n</html>\n";
}

}  // namespace moehub
