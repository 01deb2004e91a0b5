#include "study/reproduce_tables.hpp"

#include "base/portable_math.hpp"

#include <algorithm>
#include <cctype>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

constexpr std::size_t kFirstLead = 1;  ///< column of the first baseline

template <class Of>
std::optional<double> mean_by(const Values& values, Of of) {
    double sum = 0;
    int count = 0;
    for (const std::optional<double>& value : values) {
        if (!value) continue;
        sum += of(*value);
        ++count;
    }
    return count > 0 ? std::optional(sum / count) : std::nullopt;
}

using Mean = std::optional<double> (*)(const Values&);

bool has_mean(NumberKind kind) {
    return kind == NumberKind::ratio || kind == NumberKind::share;
}

FigureTable::Row row_of_means(const FigureTable& table, std::string name, Mean mean) {
    FigureTable::Row row{{std::move(name)}, {}, true};
    row.labels.resize(table.labels.size());
    for (std::size_t i = 0; i < table.columns.size(); ++i)
        row.values.push_back(has_mean(table.columns[i].kind) ? mean(column_of(table, i))
                                                             : std::nullopt);
    return row;
}

/// "Mixtral, 8 GPUs": a number says what it is of.
std::string words_of(const std::vector<std::string>& labels, const FigureTable& table) {
    std::vector<std::string> words;
    for (std::size_t i = 0; i < labels.size(); ++i) {
        const bool number =
            !labels[i].empty() && std::isdigit(static_cast<unsigned char>(labels[i].front())) != 0;
        words.push_back(number ? labels[i] + " " + table.labels[i] : labels[i]);
    }
    return fmt::format("{}", fmt::join(words, ", "));
}

std::optional<double> lead_of(const FigureTable::Row& row) {
    return geometric_mean_of({row.values.begin() + kFirstLead, row.values.end()});
}

/// Of which series a row is: its labels but the last; empty where there is only one.
std::string series_of(const FigureTable::Row& row) {
    return fmt::format("{}", fmt::join(row.labels.begin(), std::prev(row.labels.end()), ", "));
}

}  // namespace

std::optional<double> faster(Ps slow, Ps fast) {
    if (slow <= 0 || fast <= 0) return std::nullopt;
    return static_cast<double>(slow) / static_cast<double>(fast);
}

std::optional<double> share_of(double part, double whole, bool ran) {
    return ran && whole > 0 ? std::optional(part / whole) : std::nullopt;
}

std::optional<double> mean_of(const Values& values) {
    return mean_by(values, [](double value) { return value; });
}

std::optional<double> geometric_mean_of(const Values& values) {
    const auto mean = mean_by(values, [](double value) { return portable_log(value); });
    return mean ? std::optional(portable_exp(*mean)) : std::nullopt;
}

std::optional<double> largest_of(const Values& values) {
    std::optional<double> most;
    for (const std::optional<double>& value : values)
        if (value && (!most || *value > *most)) most = value;
    return most;
}

Values column_of(const FigureTable& table, std::size_t column) {
    Values values;
    for (const FigureTable::Row& row : table.rows)
        if (!row.mean) values.push_back(row.values[column]);
    return values;
}

FigureTable leads_table(const Leads& leads, std::string figure, std::string title,
                        std::vector<std::string> labels) {
    FigureTable table{std::move(figure), std::move(title), std::move(labels)};
    table.columns.push_back({fmt::format("{} µs", leads.own), NumberKind::time});
    for (const std::string_view other : leads.others)
        table.columns.push_back(other == "ideal"
                                    ? FigureTable::Column{"of ideal", NumberKind::share}
                                    : FigureTable::Column{fmt::format("over {}", other)});
    return table;
}

void add_leads(const Leads& leads, std::vector<std::string> labels, CellKey key, const Lookup& cell,
               FigureTable& table) {
    key.system = leads.own;
    const ReproducedCell& own = cell(key);
    const Ps time = own.*leads.time;
    note_refusal(labels, own, table);
    FigureTable::Row row{labels, {time > 0 ? std::optional(to_us(time)) : std::nullopt}};
    for (const std::string_view system : leads.others) {
        key.system = system;
        const ReproducedCell& other = cell(key);
        note_refusal(labels, other, table);
        row.values.push_back(faster(other.*leads.time, time));
    }
    table.rows.push_back(std::move(row));
}

void note_refusal(const std::vector<std::string>& labels, const ReproducedCell& cell,
                  FigureTable& table) {
    if (!cell.refusal.empty())
        table.notes.push_back(fmt::format("{}: {}", words_of(labels, table), cell.refusal));
}

PublishedNumber published_mean(const Publication& paper, std::string_view figure,
                               std::string_view what, const Values& values) {
    const Mean mean = paper.means == Means::geometric ? geometric_mean_of : mean_of;
    return paper.number(figure, what, mean(values).value_or(0),
                        geometric_mean_of(values).value_or(0));
}

std::vector<PublishedNumber> published_leads(const Publication& paper, const FigureTable& table) {
    std::vector<PublishedNumber> numbers;
    for (std::size_t i = kFirstLead; i < table.columns.size(); ++i)
        if (table.columns[i].kind == NumberKind::ratio)
            numbers.push_back(
                published_mean(paper, table.figure, table.columns[i].title, column_of(table, i)));
    for (std::size_t i = kFirstLead; i < table.columns.size(); ++i) {
        const std::string what = table.columns[i].title + ", largest";
        const Values values = column_of(table, i);
        if (paper.find(table.figure, what))
            numbers.push_back(paper.number(table.figure, what, largest_of(values).value_or(0),
                                           geometric_mean_of(values).value_or(0)));
    }
    return numbers;
}

void add_means(const Publication& paper, FigureTable& table) {
    const FigureTable::Row geometric = row_of_means(table, "geometric mean", geometric_mean_of);
    if (paper.means == Means::geometric)
        table.rows.insert(table.rows.end(),
                          {geometric, row_of_means(table, "largest", largest_of)});
    else
        table.rows.insert(table.rows.end(), {row_of_means(table, "mean", mean_of), geometric});
}

PublishedClaim always_ahead(const Publication& paper, const FigureTable& table,
                            std::string_view what) {
    std::optional<double> least;
    std::string where;
    for (const FigureTable::Row& row : table.rows) {
        for (std::size_t i = 0; !row.mean && i < row.values.size(); ++i) {
            const std::optional<double>& value = row.values[i];
            if (table.columns[i].kind != NumberKind::ratio || !value) continue;
            if (least && *value >= *least) continue;
            least = *value;
            where = fmt::format("{}: {}", fmt::join(row.labels, ", "), table.columns[i].title);
        }
    }
    return paper.claim(table.figure, what, least && *least > 1,
                       least ? fmt::format("smallest lead {:.2f}× ({})", *least, where) : "");
}

PublishedClaim lead_grows(const Publication& paper, const FigureTable& table,
                          std::string_view what) {
    bool grows = !table.rows.empty();
    std::string found;
    std::string series;
    std::optional<double> before;
    for (const FigureTable::Row& row : table.rows) {
        const std::optional<double> lead = lead_of(row);
        const bool first = before == std::nullopt || series_of(row) != series;
        if (!lead || (!first && *lead <= *before)) grows = false;
        if (first) {
            series = series_of(row);
            found +=
                fmt::format("{}{}", found.empty() ? "" : "; ", series.empty() ? "" : series + ": ");
        }
        found +=
            fmt::format("{}{} {:.2f}×", first ? "" : ", ", row.labels.back(), lead.value_or(0));
        before = lead.value_or(0);
    }
    return paper.claim(table.figure, what, grows, std::move(found));
}

}  // namespace moehub
