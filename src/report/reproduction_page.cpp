#include "report/reproduction.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

std::string line(const std::vector<std::string>& cells) {
    return fmt::format("| {} |\n", fmt::join(cells, " | "));
}

std::string rule(std::size_t labels, std::size_t numbers) {
    std::string out = "|";
    for (std::size_t i = 0; i < labels; ++i) out += "---|";
    for (std::size_t i = 0; i < numbers; ++i) out += "---:|";
    return out + "\n";
}

/// That makes it.
std::string command_of(const Reproduction& all) {
    return fmt::format("moehub reproduce {}{}{}", all.paper,
                       all.figure.empty() ? "" : " --figure " + all.figure,
                       all.quick ? " --quick" : "");
}

std::string head(const Reproduction& all) {
    std::string out = fmt::format(
        "# {}: the paper's evaluation, reproduced\n\n"
        "Every number that the paper (arXiv {}{}{}) publishes of its performance, beside the "
        "simulator's. This page is written by\n\n    {}\n\n",
        all.title, all.arxiv, all.venue.empty() ? "" : ", ", all.venue, command_of(all));
    if (all.quick)
        out +=
            "**This is the quick subset: a few cells of each figure. Its means are not comparable "
            "with the paper's.**\n\n";
    for (const std::string& sentence : all.setup) out += fmt::format("- {}\n", sentence);
    if (all.means == Means::arithmetic)
        out +=
            "- Published means are taken to be arithmetic means of the cells' ratios; the "
            "geometric mean stands beside.\n";
    if (all.means == Means::geometric)
        out += "- Means are geometric means of the cells' ratios, as the paper's.\n";
    return out;
}

std::string numbers(const Reproduction& all) {
    if (all.numbers.empty()) return "";
    const bool beside = all.means == Means::arithmetic;
    const auto close = std::count_if(all.numbers.begin(), all.numbers.end(),
                                     [](const auto& one) { return one.as_published(); });
    std::string out = fmt::format(
        "\n## Published numbers\nOf {} numbers {} are within 10 %.\n\n"
        "| figure | {} | paper | ours | ours / paper | within 10 % |{}",
        all.numbers.size(), close, all.paper, beside ? " geometric mean |" : "");
    for (std::size_t i = 1; i < all.readings.size(); ++i)
        out += fmt::format(" {} | / paper | within 10 % |", all.readings[i].name);
    out += fmt::format("\n|---|---|---:|---:|---:|---|{}", beside ? "---:|" : "");
    for (std::size_t i = 1; i < all.readings.size(); ++i) out += "---:|---:|---|";
    out += "\n";
    for (const PublishedNumber& one : all.numbers) {
        std::vector<std::string> cells{one.figure,
                                       one.what,
                                       published_text(one.kind, one.paper),
                                       published_text(one.kind, one.ours),
                                       fmt::format("{:.2f}", one.ratio()),
                                       one.as_published() ? "yes" : "**no**"};
        if (beside) cells.push_back(published_text(one.kind, one.geometric));
        for (std::size_t i = 1; i < all.readings.size(); ++i) {
            if (!one.is_read(i)) {
                cells.insert(cells.end(), {"–", "–", "–"});
                continue;
            }
            cells.push_back(published_text(one.kind, one.read(i)));
            cells.push_back(fmt::format("{:.2f}", one.read(i) / one.paper));
            cells.push_back(one.as_published(i) ? "yes" : "**no**");
        }
        out += line(cells);
    }
    return out;
}

bool as_published_by_any(const PublishedNumber& one) {
    for (std::size_t i = 0; i <= one.otherwise.size(); ++i)
        if (one.as_published(i)) return true;
    return false;
}

/// What each reading takes the paper to say, and which of its numbers that explains.
std::string readings(const Reproduction& all) {
    if (all.readings.size() < 2 || all.numbers.empty()) return "";
    std::string out = fmt::format(
        "\n## How the paper is read\nWhat it leaves open is read in {} ways. Ours, all cells and "
        "all reasons are the first's; the others stand beside it.\n\n"
        "| reading | what it takes | changes to the machine | within 10 % | within 10 % by no "
        "other |\n|---|---|---|---:|---|\n",
        all.readings.size());
    for (std::size_t i = 0; i < all.readings.size(); ++i) {
        const Reading& one = all.readings[i];
        const Explained explained = explained_by(all, i);
        out += line(
            {one.name, one.what,
             one.changes.empty() ? "none" : fmt::format("{}", fmt::join(one.changes, "; ")),
             fmt::format("{} of {}", explained.numbers, explained.of),
             explained.alone.empty() ? "–" : fmt::format("{}", fmt::join(explained.alone, "; "))});
    }
    std::vector<std::string> by_none;
    for (const PublishedNumber& one : all.numbers)
        if (!as_published_by_any(one))
            by_none.push_back(fmt::format("{}, {}", one.figure, one.what));
    if (!by_none.empty())
        out += fmt::format("\nWithin 10 % by none: {}.\n", fmt::join(by_none, "; "));
    return out;
}

std::string holds_text(bool holds) {
    return holds ? "holds" : "**does not hold**";
}

std::string claims(const Reproduction& all) {
    if (all.claims.empty()) return "";
    std::vector<std::string> titles{"figure", "the paper says", "here", "found"};
    for (std::size_t i = 1; i < all.readings.size(); ++i) titles.push_back(all.readings[i].name);
    std::string out = "\n## Stated without a number\n" + line(titles) + rule(titles.size(), 0);
    for (const PublishedClaim& one : all.claims) {
        std::vector<std::string> cells{one.figure, one.what, holds_text(one.holds), one.found};
        for (std::size_t i = 1; i < all.readings.size(); ++i)
            cells.push_back(one.otherwise.empty() ? "–" : holds_text(one.otherwise[i - 1]));
        out += line(cells);
    }
    return out;
}

std::string reasons(const Reproduction& all) {
    // Numbers that differ for the same reason stand together.
    std::vector<std::pair<std::string, std::vector<std::string>>> by_reason;
    const auto add = [&](const std::string& reason, const std::string& what) {
        if (reason.empty()) return;
        const auto known = std::find_if(by_reason.begin(), by_reason.end(),
                                        [&](const auto& one) { return one.first == reason; });
        if (known == by_reason.end())
            by_reason.push_back({reason, {what}});
        else
            known->second.push_back(what);
    };
    for (const PublishedNumber& one : all.numbers)
        add(one.reason, fmt::format("{}, {}", one.figure, one.what));
    for (const PublishedClaim& one : all.claims)
        add(one.reason, fmt::format("{}, {}", one.figure, one.what));
    if (by_reason.empty()) return "";
    std::string out = "\n## Why they differ\nWhere ours is off by more than 10 %.\n\n";
    for (const auto& [reason, whats] : by_reason)
        out += fmt::format("- *{}.* {}\n", fmt::join(whats, "; "), reason);
    return out;
}

std::string table(const FigureTable& figure) {
    std::vector<std::string> titles = figure.labels;
    for (const FigureTable::Column& column : figure.columns) titles.push_back(column.title);
    std::string out = fmt::format("\n### {}: {}\n", figure.figure, figure.title) + line(titles) +
                      rule(figure.labels.size(), figure.columns.size());
    for (const FigureTable::Row& row : figure.rows) {
        out += line(cells_of(figure, row));
    }
    if (!figure.notes.empty()) out += "\nNot run:\n";
    for (const std::string& note : figure.notes) out += fmt::format("- {}\n", note);
    return out;
}

}  // namespace

std::string reproduction_page(const Reproduction& all) {
    std::string out = head(all) + numbers(all) + readings(all) + claims(all) + reasons(all);
    if (!all.tables.empty()) out += "\n## Every cell\n";
    for (const FigureTable& figure : all.tables) out += table(figure);
    return out;
}

}  // namespace moehub
