#include "report/page.hpp"
#include "report/reproduction.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

using Align = Table::Align;

const char* unit_of(NumberKind kind) {
    switch (kind) {
        case NumberKind::share:
            return "%";
        case NumberKind::time:
            return "µs";
        case NumberKind::size:
            return "GB";
        case NumberKind::ratio:
            break;
    }
    return "×";
}

std::string name_of(const PublishedNumber& one) {
    return fmt::format("{}: {}", one.figure, one.what);
}

/// Published and ours of one kind, which have one scale.
void add_numbers_chart(PageSection& section, const Reproduction& all, NumberKind kind,
                       const std::string& title) {
    const double scale = kind == NumberKind::share ? 100 : 1;
    BarChart chart{title, unit_of(kind), {}, {{"paper", {}}, {"here", {}}}};
    for (std::size_t i = 1; i < all.readings.size(); ++i)
        chart.series.push_back({all.readings[i].name, {}});
    for (const PublishedNumber& one : all.numbers) {
        if (one.kind != kind) continue;
        chart.categories.push_back(name_of(one));
        chart.series[0].values.emplace_back(scale * one.paper);
        for (std::size_t i = 0; i == 0 || i < all.readings.size(); ++i)
            chart.series[i + 1].values.push_back(one.is_read(i) ? std::optional(scale * one.read(i))
                                                                : std::nullopt);
    }
    if (!chart.categories.empty()) section.blocks.push_back(std::move(chart));
}

PageTable numbers_table(const Reproduction& all) {
    PageTable table{
        "Published numbers",
        {{"figure", Align::left}, {"what", Align::left}, {"paper"}, {"here"}, {"here/paper"}},
        {}};
    for (std::size_t i = 1; i < all.readings.size(); ++i)
        table.columns.insert(table.columns.end(), {{all.readings[i].name}, {"/paper"}});
    table.columns.push_back({"within 10 %", Align::left});
    table.columns.push_back({"why it differs", Align::left});
    for (const PublishedNumber& one : all.numbers) {
        std::vector<std::string>& cells = table.rows.emplace_back();
        cells = {one.figure, one.what, published_text(one.kind, one.paper)};
        for (std::size_t i = 0; i == 0 || i < all.readings.size(); ++i) {
            const bool read = one.is_read(i);
            cells.push_back(read ? published_text(one.kind, one.read(i)) : "–");
            cells.push_back(read ? fmt::format("{:.2f}", one.read(i) / one.paper) : "–");
        }
        cells.push_back(one.as_published() ? "yes" : "no");
        cells.push_back(all.quick ? "" : one.reason);
    }
    return table;
}

PageSection numbers_section(const Reproduction& all) {
    const auto close = std::count_if(all.numbers.begin(), all.numbers.end(),
                                     [](const auto& one) { return one.as_published(); });
    PageSection section{
        "Published and here",
        {fmt::format("Of {} numbers {} are within 10 %.", all.numbers.size(), close)},
        {},
        {}};
    add_numbers_chart(section, all, NumberKind::ratio, "Ratios");
    add_numbers_chart(section, all, NumberKind::share, "Shares");
    add_numbers_chart(section, all, NumberKind::time, "Times");
    add_numbers_chart(section, all, NumberKind::size, "Sizes");
    section.blocks.push_back(numbers_table(all));
    for (std::size_t i = 0; all.readings.size() > 1 && i < all.readings.size(); ++i)
        section.notes.push_back(fmt::format("{}{}: {}", all.readings[i].name,
                                            i == 0 ? " (here)" : "", all.readings[i].what));
    return section;
}

PageSection claims_section(const Reproduction& all) {
    PageTable table{"What the paper says without a number",
                    {{"figure", Align::left},
                     {"the paper says", Align::left},
                     {"holds", Align::left},
                     {"found", Align::left}},
                    {}};
    for (const PublishedClaim& one : all.claims)
        table.rows.push_back({one.figure, one.what, one.holds ? "yes" : "no", one.found});
    return {"Claims", {}, {std::move(table)}, {}};
}

/// That most columns have.
NumberKind usual_kind(const FigureTable& figure) {
    const auto columns = [&](NumberKind kind) {
        return std::count_if(figure.columns.begin(), figure.columns.end(),
                             [kind](const auto& one) { return one.kind == kind; });
    };
    NumberKind most = figure.columns.front().kind;
    for (const FigureTable::Column& column : figure.columns)
        if (columns(column.kind) > columns(most)) most = column.kind;
    return most;
}

/// Rows by their labels, with the columns of the usual kind.
BarChart figure_chart(const FigureTable& figure) {
    const NumberKind kind = usual_kind(figure);
    const double scale = kind == NumberKind::share ? 100 : 1;
    BarChart chart{figure.title, unit_of(kind), {}, {}};
    for (const FigureTable::Row& row : figure.rows)
        if (!row.mean) chart.categories.push_back(fmt::format("{}", fmt::join(row.labels, ", ")));
    for (std::size_t i = 0; i < figure.columns.size(); ++i) {
        if (figure.columns[i].kind != kind) continue;
        ChartSeries& series = chart.series.emplace_back();
        series.name = figure.columns[i].title;
        for (const FigureTable::Row& row : figure.rows)
            if (!row.mean)
                series.values.push_back(row.values[i] ? std::optional(scale * *row.values[i])
                                                      : std::nullopt);
    }
    return chart;
}

PageSection figure_section(const FigureTable& figure) {
    constexpr std::size_t kMostBars = 160;  ///< more is read in the table
    PageSection section{fmt::format("{}: {}", figure.figure, figure.title), {}, {}, figure.notes};
    PageTable table{fmt::format("{}, every cell", figure.title), {}, {}};
    for (const std::string& label : figure.labels) table.columns.push_back({label, Align::left});
    for (const FigureTable::Column& column : figure.columns)
        table.columns.push_back({column.title});
    for (const FigureTable::Row& row : figure.rows) table.rows.push_back(cells_of(figure, row));
    if (!figure.columns.empty()) {
        BarChart chart = figure_chart(figure);
        if (!chart.categories.empty() && chart.categories.size() * chart.series.size() <= kMostBars)
            section.blocks.push_back(std::move(chart));
    }
    section.blocks.push_back(std::move(table));
    return section;
}

}  // namespace

Page reproduction_html(const Reproduction& all) {
    Page page{fmt::format("{} (arXiv {}), published and here", all.title, all.arxiv), {}, {}};
    page.lead = all.setup;
    if (all.quick)
        page.lead.insert(page.lead.begin(),
                         "Quick: a few cells of each figure. Means over other cells than the "
                         "paper's are not comparable with it.");
    if (!all.numbers.empty()) page.sections.push_back(numbers_section(all));
    if (!all.claims.empty()) page.sections.push_back(claims_section(all));
    for (const FigureTable& figure : all.tables) page.sections.push_back(figure_section(figure));
    return page;
}

}  // namespace moehub
