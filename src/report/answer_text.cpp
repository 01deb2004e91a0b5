// An answer for the terminal: its lead, then block by block; and the same unbroken as Markdown.
#include "base/utf8.hpp"
#include "report/answer_forms.hpp"
#include "report/text_style.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

constexpr int kChartWidth = 72;

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
    const int width = style.bar_width(kChartWidth, name_width + 2);
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

// Markdown

/// In one line, and no end of a cell.
std::string cell_text(std::string text) {
    std::replace(text.begin(), text.end(), '\n', ' ');
    for (std::size_t at = 0; (at = text.find('|', at)) != text.npos; at += 2) text.insert(at, "\\");
    return text;
}

std::string table_line(const std::vector<std::string>& cells) {
    return fmt::format("| {} |\n", fmt::join(cells, " | "));
}

std::string table_markdown(const Table& table) {
    if (table.rows.empty() || std::none_of(table.columns.begin(), table.columns.end(),
                                           [](const Column& column) { return column.is_read(); }))
        return "";
    std::vector<std::string> titles;
    std::string rule = "|";
    for (const Column& column : table.columns) {
        if (!column.is_read()) continue;
        titles.push_back(cell_text(column.words));
        rule += column.show.is_text() ? "---|" : "---:|";
    }
    std::string out = table.caption.empty() ? "" : table.caption + "\n\n";
    out += table_line(titles) + rule + "\n";
    for (const auto& row : table.rows) {
        std::vector<std::string> cells;
        for (std::size_t i = 0; i < row.size(); ++i)
            if (table.columns[i].is_read())
                cells.push_back(cell_text(shown(row[i], table.columns[i].show)));
        out += table_line(cells);
    }
    return out;
}

struct BlockMarkdown {
    std::string operator()(const Table& table) const { return table_markdown(table); }
    std::string operator()(const Facts& facts) const {
        std::string out;
        for (const auto& [column, value] : facts.list)
            if (column.is_shown())
                out += fmt::format("- {}: {}\n", column.words, shown(value, column.show));
        return out;
    }
    std::string operator()(const Lines& lines) const { return "```\n" + lines.text + "```\n"; }
    template <class Picture>
    std::string operator()(const Picture&) const {
        return "";
    }
};

std::string items_markdown(const std::vector<std::string>& items) {
    std::string out;
    for (const std::string& one : items) out += fmt::format("- {}\n", one);
    return out;
}

/// Empty where there is nothing in it.
std::string section_markdown(const Section& section) {
    std::vector<std::string> parts{items_markdown(section.sentences)};
    for (const Block& block : section.blocks)
        if (is_for(block.reader, Reader::terminal))
            parts.push_back(std::visit(BlockMarkdown{}, block.content));
    std::vector<std::string> notes;
    for (const Note& one : section.notes)
        if (is_for(one.reader, Reader::terminal)) notes.push_back(one.text);
    parts.push_back(items_markdown(notes));
    std::erase(parts, "");
    if (parts.empty()) return "";
    return fmt::format("\n## {}\n{}", section.heading, fmt::join(parts, "\n"));
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

std::string markdown_of(const Answer& answer, const std::string& command) {
    std::string out = fmt::format("# {}\n\n", answer.title);
    for (const std::string& line : answer.lead)
        if (line != answer.title) out += line + "\n\n";
    out += fmt::format("This page is written by\n\n    {}\n", command);
    for (const Section& section : answer.sections) out += section_markdown(section);
    return out;
}

}  // namespace moehub
