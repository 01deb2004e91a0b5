/// Figures as tables of numbers, and the means that papers publish of them.
#pragma once
#include <moehub/reproduce.hpp>

#include <optional>
#include <string>
#include <vector>

namespace moehub {

using Values = std::vector<std::optional<double>>;  ///< nothing: it could not run

/// How many times faster; nothing when one of the two did not run.
std::optional<double> faster(Ps slow, Ps fast);

/// Of what there is; nothing when that is nothing.
std::optional<double> mean_of(const Values& values);
std::optional<double> geometric_mean_of(const Values& values);
std::optional<double> largest_of(const Values& values);

/// One column, rows of means aside.
Values column_of(const FigureTable& table, std::size_t column);

/// Two rows at the end, arithmetic and geometric, of every column that is neither time nor size.
void add_means(FigureTable& table);
/// The same with the geometric mean and the largest.
void add_geometric_and_largest(FigureTable& table);

/// What a published number says of a figure's cells.
enum class Over { mean, geometric_mean, largest };
PublishedNumber published(const FigureTable& table, std::string what, double paper,
                          const Values& values, Over over = Over::mean);

/// The smallest ratio of a table, rows of means and values that are not there aside.
struct SmallestRatio {
    double value = 0;
    std::string where;  ///< its row and column in words
};
std::optional<SmallestRatio> smallest_ratio(const FigureTable& table);

/// A claim that every ratio of the table is above 1.
PublishedClaim always_ahead(const FigureTable& table, std::string what);

}  // namespace moehub
