/// A reproduced paper for the terminal, as a page, and for programs.
#pragma once
#include "base/json.hpp"
#include "report/page.hpp"
#include "report/text_style.hpp"

#include <moehub/reproduce.hpp>

#include <optional>
#include <string>
#include <vector>

namespace moehub {

/// Published numbers beside ours with bars, claims, every table, and why what differs does.
std::string reproduction_text(const Reproduction& all, const TextStyle& style);

/// The same as Markdown, for docs/. Nothing in it depends on when or where it ran.
std::string reproduction_page(const Reproduction& all);

/// The same with charts; document and command are the caller's to fill in.
Page reproduction_html(const Reproduction& all);

/// "readings", "numbers", "claims", "tables" and "cells"; times in µs. `ratio` is ours / paper,
/// `reason` null where a number is as published.
Json reproduction_json(const Reproduction& all);

/// Of the published numbers, what a reading explains: those it comes within 10 % of.
struct Explained {
    std::size_t numbers = 0;
    std::size_t of = 0;              ///< that it was asked for
    std::vector<std::string> alone;  ///< "figure, what": by no other reading
};
Explained explained_by(const Reproduction& all, std::size_t reading);

/// 2.195 as "2.20", 0.968 as "96.8 %", 1234.5 µs as "1,234.5"; nothing as a dash.
std::string number_text(NumberKind kind, const std::optional<double>& value);

/// A row of a table: its labels and numbers; nothing where a row of means has none.
std::vector<std::string> cells_of(const FigureTable& figure, const FigureTable::Row& row);

/// As above with the digits that papers print: 2.195.
std::string published_text(NumberKind kind, double value);

}  // namespace moehub
