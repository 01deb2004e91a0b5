// Is what papers publish read from their files, row by row, and does every reason hold for what the
// pages in docs/reproduction say of today? Pages are written by `moehub reproduce PAPER --page`.
#include "study/reproduce_published.hpp"

#include "error_of.hpp"
#include "paper_cells.hpp"

#include <cctype>
#include <fstream>
#include <set>
#include <sstream>
#include <stdexcept>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace moehub::reproduce_published_test {
namespace {

constexpr const char* kPapers[] = {"moe-hub", "dysharp", "cais", "moetuner", "pangu"};

using Row = std::pair<std::string, std::string>;  ///< figure and what

std::set<Row> rows_of(const Publication& paper) {
    std::set<Row> rows;
    for (const PublishedRow& one : paper.rows) rows.emplace(one.figure, one.what);
    return rows;
}

std::set<Row> asked_by(const std::vector<PaperFigure>& figures) {
    ByHand cells([](const CellKey&, ReproducedCell& cell) { cell.time = 1000; });
    std::set<Row> rows;
    for (const PaperFigure& figure : figures) {
        const FigureResult result = figure.make(cells.lookup());
        for (const PublishedNumber& one : result.numbers) rows.emplace(one.figure, one.what);
        for (const PublishedClaim& one : result.claims) rows.emplace(one.figure, one.what);
    }
    return rows;
}

TEST(Published, every_row_is_asked_for_and_no_other) {
    EXPECT_EQ(asked_by(moe_hub_cells(false).figures), rows_of(publication("moe-hub")));
    EXPECT_EQ(asked_by(dysharp_cells(false).figures), rows_of(publication("dysharp")));
    EXPECT_EQ(asked_by(cais_cells(false).figures), rows_of(publication("cais")));
}

TEST(Published, figures_are_those_that_are_computed) {
    const auto names = [](const std::vector<PaperFigure>& figures) {
        std::vector<std::string> list;
        for (const PaperFigure& one : figures) list.push_back(one.name);
        return list;
    };
    const auto named = [](const char* paper) {
        std::vector<std::string> list;
        for (const NamedFigure& one : publication(paper).figures) list.push_back(one.name);
        return list;
    };
    EXPECT_EQ(names(moe_hub_cells(false).figures), named("moe-hub"));
    EXPECT_EQ(names(dysharp_cells(false).figures), named("dysharp"));
    EXPECT_EQ(names(cais_cells(false).figures), named("cais"));
    EXPECT_EQ(named("moetuner"), (std::vector<std::string>{"one-node", "two-nodes", "methods"}));
}

TEST(Published, a_lookup_that_finds_no_row_is_a_defect) {
    const Publication& paper = publication("moe-hub");
    EXPECT_THROW(paper.number("layer", "over nobody", 1), std::logic_error);
    EXPECT_THROW(paper.number("imbalance", "the lead stays however uneven experts are", 1),
                 std::logic_error)
        << "a claim is no number";
    EXPECT_THROW(paper.claim("layer", "over comet", true), std::logic_error);
}

constexpr const char* kSmall = R"(title = "T"
arxiv = "1"
means = "geometric"
[reasons]
wire = ["The wire", "is slow."]
[layer]
title = "a layer"
where = "evaluation"
"over x" = {value = 2.0, reason = "wire", holds = [0.7, 0.85]}
"over y" = {value = 4.0}
"of it" = {value = 0.5, kind = "share", where = "abstract"}
"ahead of 3.87 % of all" = {claim = true, reason = "wire"}
)";

Publication small() {
    return parse_publication(kSmall, "small", "small.toml");
}

TEST(Published, a_row_has_what_its_file_says) {
    const Publication paper = small();
    EXPECT_EQ(paper.means, Means::geometric);
    ASSERT_EQ(paper.rows.size(), 4u);
    EXPECT_EQ(paper.number("layer", "over x", 2).paper, 2.0);
    EXPECT_EQ(paper.number("layer", "over x", 2).where, "evaluation");
    EXPECT_EQ(paper.number("layer", "of it", 0.5).kind, NumberKind::share);
    EXPECT_EQ(paper.number("layer", "of it", 0.5).where, "abstract");
    EXPECT_EQ(paper.claim("layer", "ahead of 3.87 % of all", false).reason, "The wire is slow.");
    EXPECT_EQ(paper.claim("layer", "ahead of 3.87 % of all", true).reason, "");
}

/// Above, below, and by how much: what is not in the range is no longer what was explained.
TEST(Published, a_reason_is_given_in_its_range_alone) {
    const Publication paper = small();
    for (const double ours : {2.0, 1.81, 2.19}) {
        const PublishedNumber one = paper.number("layer", "over x", ours);
        EXPECT_TRUE(one.explained && one.reason.empty()) << ours;
    }
    for (const double ours : {1.41, 1.6, 1.69}) {
        const PublishedNumber one = paper.number("layer", "over x", ours);
        EXPECT_TRUE(one.explained) << ours;
        EXPECT_EQ(one.reason, "The wire is slow.") << ours;
    }
    for (const double ours : {1.39, 1.75, 2.3, 0.1}) {
        const PublishedNumber one = paper.number("layer", "over x", ours);
        EXPECT_FALSE(one.explained) << ours;
        EXPECT_EQ(
            one.reason,
            "no explanation yet: what is known holds for 0.7 to 0.85 of the published number");
    }
    EXPECT_FALSE(paper.number("layer", "over y", 3).explained);
    EXPECT_EQ(paper.number("layer", "over y", 3).reason, kNoExplanation);
}

/// The error of the small file where "old => new" is changed in it.
std::string error_with(const std::string& change) {
    const std::size_t arrow = change.find(" =>");
    const std::string old = change.substr(0, arrow);
    const std::string by = change.substr(std::min(arrow + 4, change.size()));
    std::string text = kSmall;
    const std::size_t at = text.find(old);
    EXPECT_NE(at, std::string::npos) << old;
    text.replace(at, old.size(), by);
    return error_of([&] { parse_publication(text, "small", "small.toml"); });
}

TEST(Published, a_malformed_file_says_which_key) {
    expect_errors(error_with, R"(
title = "T" => titel = "T"
    small.toml:1: titel: found "titel", allowed: …
value = 4.0 => value = "4"
    small.toml:10: layer.over y.value: expected a number above 0, found "4"…
value = 4.0 => value = -4.0
    small.toml:10: layer.over y.value: expected…
value = 4.0 => valeu = 4.0
    small.toml:10: layer.over y.valeu: found "valeu", allowed: …
value = 4.0 => where = "here"
    small.toml:10: layer.over y: expected a value, or claim = true…
kind = "share" => kind = "shares"
    small.toml:11: layer.of it.kind: found "shares", allowed: ratio, share, size, time…
[0.7, 0.85] => [0.85, 0.7]
    small.toml:9: layer.over x.holds: expected…
, holds = [0.7, 0.85] =>
    small.toml:9: layer.over x: expected reason…
reason = "wire", holds => reason = "wires", holds
    small.toml:9: layer.over x: no reason "wires"…
where = "evaluation" =>
    small.toml:9: layer.over x: where: missing…
title = "a layer" =>
    small.toml:9: layer.over x: the figure has no…
wire = [ => rest = "Rest."
wire = [
    small.toml:5: reasons.rest: no row has it…
"over y" => "over x"
    small.toml:10: not TOML: …
)");
}

/// Digits that are not part of a name such as Qwen2, H100 or GEMM-1.
bool has_number(const std::string& text) {
    for (std::size_t i = 0; i < text.size(); ++i)
        if (std::isdigit(static_cast<unsigned char>(text[i])) != 0 &&
            (i == 0 || std::string_view(" (.,×").find(text[i - 1]) != std::string_view::npos))
            return true;
    return false;
}

TEST(Published, no_reason_holds_a_figure_that_was_measured) {
    for (const char* paper : kPapers)
        for (const PublishedRow& row : publication(paper).rows)
            EXPECT_FALSE(has_number(row.reason)) << paper << ": " << row.figure << ", " << row.what;
}

std::vector<std::string> cells_of_line(const std::string& line) {
    std::vector<std::string> cells;
    for (std::size_t from = 2; from < line.size();) {
        const std::size_t to = line.find(" |", from - 1);
        if (to == std::string::npos) break;
        cells.push_back(to > from ? line.substr(from, to - from) : "");
        from = to + 3;
    }
    return cells;
}

/// The rows of a section of a page, by figure and what, which stand in these columns.
std::map<Row, std::vector<std::string>> section_of(const std::string& paper,
                                                   const std::string& heading, std::size_t figure) {
    std::ifstream page(MOEHUB_SOURCE_DIR "/docs/reproduction/" + paper + ".md");
    EXPECT_TRUE(page) << paper;
    std::map<Row, std::vector<std::string>> rows;
    bool inside = false;
    for (std::string line; std::getline(page, line);) {
        if (line.starts_with("## ")) inside = line == "## " + heading;
        if (!inside || !line.starts_with("| ") || line.find("here/paper") != line.npos ||
            line.find("the paper says") != line.npos)
            continue;
        std::vector<std::string> cells = cells_of_line(line);
        if (cells.size() < figure + 3) {
            ADD_FAILURE() << line;
            continue;
        }
        rows[{cells[figure], cells[figure + 1]}] = cells;
    }
    return rows;
}

/// Runs take minutes: a page says what the last one found. A figure that has left the range that
/// its reason holds for, or the 10 % where it needs none, fails here when its page is written anew.
TEST(Published, every_number_of_the_pages_is_in_its_range) {
    for (const std::string paper : kPapers) {
        const auto rows = section_of(paper, "Published numbers", 0);
        std::size_t numbers = 0;
        for (const PublishedRow& row : publication(paper).rows) {
            if (row.claim) continue;
            ++numbers;
            const auto found = rows.find({row.figure, row.what});
            const std::string name = fmt::format("{}: {}, {}", paper, row.figure, row.what);
            ASSERT_NE(found, rows.end()) << name << " is not on the page";
            const double ratio = std::stod(found->second[4]);
            EXPECT_EQ(found->second[5], row.reason.empty() ? "yes" : "no")
                << name << ": reasons are of what is off by more than 10 %, and of nothing else";
            if (row.holds) {
                EXPECT_TRUE(row.holds->has(ratio)) << name;
                EXPECT_LE(row.holds->most - row.holds->least, 0.1 * std::max(1.0, ratio) + 0.06)
                    << name << ": a range that is too wide says nothing";
            }
        }
        EXPECT_EQ(rows.size(), numbers) << paper << ": all that the page has is in the file";
    }
}

TEST(Published, every_claim_of_the_pages_holds_or_says_why_not) {
    for (const std::string paper : kPapers) {
        const auto rows = section_of(paper, "Claims", 1);
        std::size_t claims = 0;
        for (const PublishedRow& row : publication(paper).rows) {
            if (!row.claim) continue;
            ++claims;
            const auto found = rows.find({row.figure, row.what});
            const std::string name = fmt::format("{}: {}, {}", paper, row.figure, row.what);
            ASSERT_NE(found, rows.end()) << name << " is not on the page";
            EXPECT_EQ(found->second[0], row.reason.empty() ? "✓" : "✗") << name;
        }
        EXPECT_EQ(rows.size(), claims) << paper;
    }
}

}  // namespace
}  // namespace moehub::reproduce_published_test
