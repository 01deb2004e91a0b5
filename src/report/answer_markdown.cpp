// An answer as a page of Markdown: what terminals show of it, unbroken.
#include "report/answer_forms.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

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

std::string list(const std::vector<std::string>& items) {
    std::string out;
    for (const std::string& one : items) out += fmt::format("- {}\n", one);
    return out;
}

/// Empty where there is nothing in it.
std::string section_markdown(const Section& section) {
    std::vector<std::string> parts{list(section.sentences)};
    for (const Block& block : section.blocks)
        if (is_for(block.reader, Reader::terminal))
            parts.push_back(std::visit(BlockMarkdown{}, block.content));
    std::vector<std::string> notes;
    for (const Note& one : section.notes)
        if (is_for(one.reader, Reader::terminal)) notes.push_back(one.text);
    parts.push_back(list(notes));
    std::erase(parts, "");
    if (parts.empty()) return "";
    return fmt::format("\n## {}\n{}", section.heading, fmt::join(parts, "\n"));
}

}  // namespace

std::string markdown_of(const Answer& answer, const std::string& command) {
    std::string out = fmt::format("# {}\n\n", answer.title);
    for (const std::string& line : answer.lead)
        if (line != answer.title) out += line + "\n\n";
    out += fmt::format("This page is written by\n\n    {}\n", command);
    for (const Section& section : answer.sections) out += section_markdown(section);
    return out;
}

}  // namespace moehub
