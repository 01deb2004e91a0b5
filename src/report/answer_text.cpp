// An answer for the terminal: its lead, then block by block.
#include "base/utf8.hpp"
#include "report/answer_forms.hpp"
#include "report/text_style.hpp"
#include "report/text_table.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr int kBarWidth = 72;

TextTable::Align align_of(Show::Form form) {
    using enum Show::Form;
    switch (form) {
        case text:
        case once:
            return TextTable::Align::left;
        case prose:
            return TextTable::Align::text;
        case bar:
            return TextTable::Align::bar;
        default:
            return TextTable::Align::right;
    }
}

std::string table_text(const Table& table, const TextStyle& style) {
    std::vector<std::size_t> columns;
    std::vector<TextTable::Column> titles;
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
        const Column& column = table.columns[i];
        if (!column.is_shown()) continue;
        columns.push_back(i);
        titles.push_back({column.words, align_of(column.show.form), column.rank});
    }
    if (columns.empty() || table.rows.empty()) return "";
    TextTable text(std::move(titles));
    std::vector<std::string> before(table.columns.size());
    for (const auto& row : table.rows) {
        std::vector<std::string> cells;
        for (const std::size_t i : columns) {
            const Show& show = table.columns[i].show;
            std::string cell = shown(row[i], show);
            if (show.form == Show::Form::once && cell == before[i])
                cell.clear();
            else
                before[i] = cell;
            cells.push_back(std::move(cell));
        }
        text.add(std::move(cells));
    }
    const std::string caption = table.caption.empty() ? "" : printable(table.caption) + "\n";
    return caption + text.text(style);
}

std::string facts_text(const Facts& facts) {
    std::size_t width = 0;
    for (const auto& [column, value] : facts.list)
        if (column.is_shown()) width = std::max(width, display_width(column.words));
    std::string out;
    for (const auto& [column, value] : facts.list) {
        const std::string text = column.is_shown() ? shown(value, column.show) : "";
        if (text.empty()) continue;
        out += fmt::format("  {}{}  {}\n", column.words,
                           std::string(width - display_width(column.words), ' '), printable(text));
    }
    return out;
}

std::string chart_text(const BarChart& chart, const TextStyle& style) {
    if (!chart.has_marks()) return "";
    std::size_t name_width = 0;
    double most = 0;
    for (std::size_t i = 0; i < chart.categories.size(); ++i) {
        name_width = std::max(name_width, display_width(chart.categories[i]));
        double sum = 0;
        for (const ChartSeries& one : chart.series) sum += std::max(0.0, one.values[i].value_or(0));
        most = std::max(most, sum);
    }
    std::string out = chart.title + ":";
    for (const ChartSeries& one : chart.series)
        if (std::any_of(one.values.begin(), one.values.end(),
                        [](const auto& value) { return value.value_or(0) > 0; }))
            out += fmt::format("  {} {}", one.mark, one.name);
    out += "\n";
    const int width = style.bar_width(kBarWidth, name_width + 2);
    for (std::size_t i = 0; i < chart.categories.size(); ++i) {
        std::vector<BarPart> parts;
        for (const ChartSeries& one : chart.series)
            parts.push_back({one.values[i].value_or(0), one.mark});
        const std::string& name = chart.categories[i];
        out += fmt::format("{}{}  {}\n", printable(name),
                           std::string(name_width - display_width(name), ' '),
                           stacked_bar(parts, most, width));
    }
    return out;
}

struct BlockText {
    const TextStyle& style;
    std::string operator()(const Table& table) const { return table_text(table, style); }
    std::string operator()(const Facts& facts) const { return facts_text(facts); }
    std::string operator()(const BarChart& chart) const { return chart_text(chart, style); }
    std::string operator()(const HeatChart& chart) const { return heat_text(chart, style); }
    std::string operator()(const Lines& lines) const {
        return lines.drawn ? lines.drawn(style.width) : lines.text;
    }
    template <class Picture>
    std::string operator()(const Picture&) const {
        return "";
    }
};

/// Sentences are read, not searched: files and pipes, which have all of a table in one line, get
/// them in lines of a width that eyes follow.
std::string paragraph(const std::string& text, const TextStyle& style) {
    constexpr int kReadable = 100;
    std::string out;
    for (const std::string& line : lines_of(text)) out += (out.empty() ? "" : " ") + line;
    return fitted(printable(out) + "\n", std::min(style.width, kReadable));
}

}  // namespace

std::string text_of(const Answer& answer, const TextStyle& style) {
    if (answer.file) return *answer.file;
    std::vector<std::string> parts;
    std::string lead;
    for (const std::string& line : answer.lead) lead += printable(line) + "\n";
    parts.push_back(std::move(lead));
    for (const Section& section : answer.sections) {
        std::string sentences;
        for (const std::string& one : section.sentences) sentences += paragraph("- " + one, style);
        parts.push_back(std::move(sentences));
        for (const Block& block : section.blocks)
            if (is_for(block.reader, Reader::terminal))
                parts.push_back(std::visit(BlockText{style}, block.content));
        std::string notes;
        for (const Note& one : section.notes)
            if (is_for(one.reader, Reader::terminal)) notes += paragraph(one.text, style);
        parts.push_back(std::move(notes));
    }
    std::string out;
    for (const std::string& part : parts)
        if (!part.empty()) out += (out.empty() ? "" : "\n") + part;
    return fitted(out, style.width);
}

}  // namespace moehub
