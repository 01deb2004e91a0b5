#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "report/document.hpp"
#include "report/progress.hpp"
#include "report/table.hpp"
#include "request/values.hpp"

#include <moehub/validate.hpp>

#include <algorithm>
#include <cmath>
#include <memory>

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr std::size_t kWorstRows = 10;

struct Request {
    std::string file;
    std::string gpu = ValidateOptions{}.gpu;
    std::string above = "0 us";
    bool all_rows = false;
    bool json = false;
    std::string output;
};

using Align = Table::Align;

std::string summary_text(const Validation& validation, const TextStyle& style) {
    Table table({{"", Align::left},
                 {"rows"},
                 {"median"},
                 {"mean"},
                 {"p90"},
                 {"max"},
                 {"mean |error|", Align::bar}});
    double worst = 0;
    for (const auto& one : validation.summary) worst = std::max(worst, one.mean);
    for (const auto& one : validation.summary)
        table.add({one.name, grouped(static_cast<std::int64_t>(one.rows)), percent(one.median),
                   percent(one.mean), percent(one.p90), percent(one.max),
                   bar(worst > 0 ? one.mean / worst : 0, 20)});
    return "Absolute error, |predicted / measured − 1|\n\n" + table.text(style);
}

std::string skipped_text(const Validation& validation, const TextStyle& style) {
    Table table({{"skipped", Align::left}, {"rows"}, {"why", Align::text}});
    for (const auto& one : validation.skipped)
        table.add({one.name, grouped(static_cast<std::int64_t>(one.rows)), one.why});
    return table.text(style);
}

/// Text stands left, numbers right: decided by what the column holds.
Align align_of(const std::vector<ValidationRow>& rows, std::size_t column) {
    for (const auto& row : rows)
        if (row.shape[column].second.find_first_not_of("0123456789.-+eE") != std::string::npos)
            return Align::left;
    return Align::right;
}

std::string rows_text(const std::vector<ValidationRow>& rows, const TextStyle& style) {
    std::vector<Table::Column> columns{{"line"}};
    for (std::size_t i = 0; i < rows.front().shape.size(); ++i)
        columns.push_back({rows.front().shape[i].first, align_of(rows, i), 1});
    for (const auto* title : {"measured", "predicted", "unit", "error"})
        columns.push_back({title, std::string_view(title) == "unit" ? Align::left : Align::right});
    Table table(columns);
    for (const auto& row : rows) {
        std::vector<std::string> cells{fmt::format("{}", row.line)};
        for (const auto& cell : row.shape) cells.push_back(cell.second);
        cells.insert(cells.end(), {significant(row.measured), significant(row.predicted),
                                   row.unit == "us" ? "µs" : row.unit, percent(row.error, true)});
        table.add(std::move(cells));
    }
    return table.text(style);
}

std::vector<ValidationRow> worst_rows(std::vector<ValidationRow> rows) {
    std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
        return std::abs(a.error) > std::abs(b.error);
    });
    if (rows.size() > kWorstRows) rows.resize(kWorstRows);
    return rows;
}

std::string text_of(const Validation& validation, bool all_rows, const TextStyle& style) {
    std::string out;
    if (!validation.rows.empty()) {
        out += summary_text(validation, style);
        const auto& rows = validation.rows;
        const bool all = all_rows || rows.size() <= kWorstRows;
        out += all ? "\nRows\n\n" : fmt::format("\nThe {} worst rows\n\n", kWorstRows);
        out += rows_text(all ? rows : worst_rows(rows), style);
    }
    if (!validation.skipped.empty())
        out += (out.empty() ? "" : "\n") + skipped_text(validation, style);
    return out;
}

void run(const Request& request) {
    Validation validation;
    {
        Progress progress("predicting");
        ValidateOptions options;
        options.gpu = request.gpu;
        options.above = time_of("--above", request.above);
        options.progress = [&progress](std::size_t done, std::size_t total) {
            progress.update(done, total);
        };
        require_writable({output_file("-o", request.output)});
        validation = validate(request.file, options);
    }
    const TextStyle style = style_for(request.output);
    put(request.json ? document_text("validate", Json::parse(to_json(validation)))
                     : fitted(text_of(validation, request.all_rows, style), style.width),
        request.output);
}

}  // namespace

Command validate_command() {
    const auto request = std::make_shared<Request>();
    return {
        "validate",
        "Predict every row of a CSV file of measurements and show the errors",
        {
            {"FILE",
             &request->file,
             "timings of kernels, operators, layers, eager phases, collectives or MoE "
             "communication; known by header",
             "CSV",
             {.required = true}},
            {"--gpu", &request->gpu, "preset or TOML file of the card, where rows name none",
             "GPU"},
            {"--above", &request->above, "leave out times shorter than this", "TIME"},
            {"--rows", &request->all_rows, "print every row, not only the ten worst"},
            {"--json", &request->json, "print JSON with every row; errors are fractions"},
            {"-o,--output", &request->output, "write to this file instead", "FILE"},
        },
        "Example:\n  moehub validate validation/published_collectives.csv",
        [request] { run(*request); },
    };
}

}  // namespace moehub
