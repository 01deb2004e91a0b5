/// The forms of an answer: what terminals, files, pages and programs get of it.
#pragma once
#include "report/answer.hpp"
#include "report/text_style.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace moehub {

/// Goes up when a key that was there is renamed, removed or means something else; docs/json.md says
/// what documents hold.
inline constexpr int kSchemaVersion = 2;

/// {"schema": {"command": "compare", "version": 2}, facts …, tables …}: a table is a list of its
/// rows, a row an object.
Json document_of(const Answer& answer);
/// The document as text, with a newline at its end.
std::string json_text(const Answer& answer);

/// The first table that programs get, one line a row; facts where there is no table. Empty where
/// there is neither.
std::string csv_text(const Answer& answer);

/// For people, no line wider than the style's width.
std::string text_of(const Answer& answer, const TextStyle& style);

/// A page of Markdown, without charts; `command` makes it.
std::string markdown_of(const Answer& answer, const std::string& command);
/// One HTML file that needs no network; `command` made it.
std::string page_html(const Answer& answer, const std::string& command);
/// What notebooks show: its lead, tables and sentences as HTML, without charts.
std::string notebook_html(const Answer& answer);

// What is in every report page; cmake/charts.cmake generates these functions.

std::string_view page_style();
std::string_view page_script();    ///< src/report/web: turns charts' descriptions into charts
std::string_view chart_library();  ///< Apache ECharts, gzipped, in Base64; empty in a build without
std::string_view chart_licence();  ///< its licence's notice

/// Fit for text and attributes of SVG and HTML: markup escaped, control characters and broken UTF-8
/// made visible.
std::string escaped(std::string_view text);

/// Lines of a text, without empty ones.
std::vector<std::string> lines_of(std::string_view text);

}  // namespace moehub
