#include "study/figure_table.hpp"

#include "base/portable_math.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

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

bool has_mean(NumberKind kind) {
    return kind == NumberKind::ratio || kind == NumberKind::share;
}

FigureTable::Row row_of_means(const FigureTable& table, std::string name,
                              std::optional<double> (*mean)(const Values&)) {
    FigureTable::Row row{{std::move(name)}, {}, true};
    row.labels.resize(table.labels.size());
    for (std::size_t i = 0; i < table.columns.size(); ++i)
        row.values.push_back(has_mean(table.columns[i].kind) ? mean(column_of(table, i))
                                                             : std::nullopt);
    return row;
}

std::optional<double> (*taken_over(Over over))(const Values&) {
    switch (over) {
        case Over::geometric_mean:
            return geometric_mean_of;
        case Over::largest:
            return largest_of;
        case Over::mean:
            break;
    }
    return mean_of;
}

}  // namespace

std::optional<double> faster(Ps slow, Ps fast) {
    if (slow <= 0 || fast <= 0) return std::nullopt;
    return static_cast<double>(slow) / static_cast<double>(fast);
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

void add_means(FigureTable& table) {
    FigureTable::Row arithmetic = row_of_means(table, "mean", mean_of);
    FigureTable::Row geometric = row_of_means(table, "geometric mean", geometric_mean_of);
    table.rows.push_back(std::move(arithmetic));
    table.rows.push_back(std::move(geometric));
}

void add_geometric_and_largest(FigureTable& table) {
    FigureTable::Row geometric = row_of_means(table, "geometric mean", geometric_mean_of);
    FigureTable::Row largest = row_of_means(table, "largest", largest_of);
    table.rows.push_back(std::move(geometric));
    table.rows.push_back(std::move(largest));
}

PublishedNumber published(const FigureTable& table, std::string what, double paper,
                          const Values& values, Over over) {
    PublishedNumber number;
    number.figure = table.figure;
    number.what = std::move(what);
    number.paper = paper;
    number.ours = taken_over(over)(values).value_or(0);
    number.geometric = geometric_mean_of(values).value_or(0);
    return number;
}

std::optional<SmallestRatio> smallest_ratio(const FigureTable& table) {
    std::optional<SmallestRatio> least;
    for (const FigureTable::Row& row : table.rows) {
        if (row.mean) continue;
        for (std::size_t i = 0; i < row.values.size(); ++i) {
            const std::optional<double>& value = row.values[i];
            if (table.columns[i].kind != NumberKind::ratio || !value) continue;
            if (least && *value >= least->value) continue;
            least = {*value,
                     fmt::format("{}: {}", fmt::join(row.labels, ", "), table.columns[i].title)};
        }
    }
    return least;
}

PublishedClaim always_ahead(const FigureTable& table, std::string what) {
    PublishedClaim claim{table.figure, std::move(what), false, "", ""};
    const std::optional<SmallestRatio> least = smallest_ratio(table);
    if (!least) return claim;
    claim.holds = least->value > 1;
    claim.found = fmt::format("smallest lead {:.2f}× ({})", least->value, least->where);
    return claim;
}

}  // namespace moehub
