// How far predictions are from a file of measurements.
#include "answers/question.hpp"
#include "base/json.hpp"

#include <moehub/validate.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr std::size_t kWorstRows = 10;

struct Request {
    std::string file;
    ValidateOptions options;
    Settings settings;
    bool all_rows = false;
};

Options options_of(Request& request) {
    Target file = to_file(request.file);
    file.type = "CSV";
    return {
        {"FILE", std::move(file),
         "timings of kernels, operators, layers, eager phases, collectives or MoE communication; "
         "known by header",
         kRequired},
        {"--gpu", to_text(request.options.gpu, "GPU", ValueKind::gpu),
         "preset or TOML file of the card, where rows name none"},
        {"--above", to_time(request.options.above), "leave out times shorter than this"},
        {"--set", to(request.settings, {"machine"}),
         "change a value of every machine that rows name, repeatable; of cards as gpu.KEY"},
        {"--rows", to(request.all_rows), "print every row, not only the ten worst"},
    };
}

Table summary_table(const Validation& validation) {
    using One = ValidationSummary;
    double worst = 0;
    for (const One& one : validation.summary) worst = std::max(worst, one.mean);
    return table_of<One>("summary", "Absolute error, |predicted / measured − 1|",
                         {{{"", "name"}, &One::name},
                          {{"rows", "rows", kWhole}, &One::rows},
                          {{"median", "median", kPercent}, &One::median},
                          {{"mean", "mean", kPercent}, &One::mean},
                          {{"p90", "p90", kPercent}, &One::p90},
                          {{"max", "max", kPercent}, &One::max},
                          {{"mean |error|", "", bar_of(20)},
                           [worst](const One& one) { return worst > 0 ? one.mean / worst : 0.0; }}},
                         validation.summary);
}

/// A field of the file: a number where it is one.
Json field_json(const std::string& field) {
    if (field.empty()) return nullptr;
    const char* const end = field.data() + field.size();
    std::int64_t whole = 0;
    if (const auto read = std::from_chars(field.data(), end, whole);
        read.ec == std::errc() && read.ptr == end)
        return whole;
    double real = 0;
    if (const auto read = std::from_chars(field.data(), end, real);
        read.ec == std::errc() && read.ptr == end && std::isfinite(real))
        return real;
    return field;
}

/// Text stands left, numbers right: decided by what the column holds.
Show show_of(const std::vector<ValidationRow>& rows, std::size_t column) {
    const bool text = std::any_of(rows.begin(), rows.end(), [&](const ValidationRow& row) {
        return row.shape[column].second.find_first_not_of("0123456789.-+eE") != std::string::npos;
    });
    return text ? kText : kSignificant;
}

/// Programs get all rows, people those of `rows`.
Table rows_table(const std::string& key, const std::string& caption,
                 const std::vector<ValidationRow>& rows, bool for_people) {
    using Row = ValidationRow;
    const auto shown_as = [for_people](Show show) { return for_people ? show : kHidden; };
    std::vector<ColumnOf<Row>> columns{
        {{"line", "line", shown_as({Show::Form::fixed})}, &Row::line}};
    for (std::size_t i = 0; !rows.empty() && i < rows.front().shape.size(); ++i)
        columns.push_back({{rows.front().shape[i].first,
                            key.empty() ? "" : "columns." + rows.front().shape[i].first,
                            shown_as(show_of(rows, i)), 1},
                           [i, for_people](const Row& row) {
                               return for_people ? Json(row.shape[i].second)
                                                 : field_json(row.shape[i].second);
                           }});
    append(columns, {{{"measured", "measured", shown_as(kSignificant)}, &Row::measured},
                     {{"predicted", "predicted", shown_as(kSignificant)}, &Row::predicted},
                     {{"unit", "", shown_as(kText)},
                      [](const Row& row) { return row.unit == "us" ? "µs" : row.unit; }},
                     {hidden("unit"), &Row::unit},
                     {{"error", "error", shown_as(kChange)}, &Row::error}});
    return table_of<Row>(key, caption, columns, rows);
}

std::vector<ValidationRow> worst_rows(std::vector<ValidationRow> rows) {
    std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
        return std::abs(a.error) > std::abs(b.error);
    });
    if (rows.size() > kWorstRows) rows.resize(kWorstRows);
    return rows;
}

Table skipped_table(const Validation& validation) {
    using One = ValidationSkipped;
    return table_of<One>("skipped", "Skipped",
                         {{{"", "name"}, &One::name},
                          {{"rows", "rows", kWhole}, &One::rows},
                          {{"why", "reason", kProse}, &One::why}},
                         validation.skipped);
}

Answer answer_of(const Request& request, const Asker& asker) {
    ValidateOptions options = request.options;
    options.settings = request.settings.typed;
    options.progress = asker.pieces("predicting");
    const Validation validation = validate(request.file, options);
    Answer answer{.title = "Predictions against " + request.file};
    answer.facts["kind"] = validation.kind;
    answer.facts["set"] = request.settings.typed;
    if (!request.settings.typed.empty())
        answer.lead = {request.file + with_settings(request.settings.typed)};
    const auto& rows = validation.rows;
    const bool all = request.all_rows || rows.size() <= kWorstRows;
    answer.sections = {{"Errors",
                        {},
                        {{rows_table("rows", "", rows, false), Reader::program},
                         summary_table(validation),
                         rows_table("", all ? "Rows" : fmt::format("The {} worst rows", kWorstRows),
                                    all ? rows : worst_rows(rows), true),
                         skipped_table(validation)}}};
    return answer;
}

}  // namespace

Question validate_question() {
    return {.first = "FILE", .ask = asking(options_of, answer_of)};
}

}  // namespace moehub
