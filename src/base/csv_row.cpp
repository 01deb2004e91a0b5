#include "base/csv.hpp"
#include "base/quantity.hpp"
#include "base/utf8.hpp"

#include <moehub/error.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <stdexcept>

#include <fmt/format.h>

namespace moehub {

int CsvRow::line() const {
    return table_->rows_[index_].line;
}

const std::string& CsvRow::field(std::string_view column) const {
    const auto& columns = table_->columns_;
    const auto found = std::find(columns.begin(), columns.end(), column);
    if (found == columns.end())  // the caller checks the header first: a defect, not bad input
        throw std::logic_error(fmt::format("no column {} in {}", column, table_->file_));
    return table_->rows_[index_].fields[static_cast<std::size_t>(found - columns.begin())];
}

bool CsvRow::has(std::string_view column) const {
    return !field(column).empty();
}

const std::string& CsvRow::text(std::string_view column) const {
    const auto& value = field(column);
    if (value.empty()) reject(column, "any text");
    return value;
}

std::int64_t CsvRow::integer(std::string_view column, std::int64_t least, std::int64_t most) const {
    const auto& value = field(column);
    std::int64_t result = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), result);
    const bool whole = error == std::errc() && end == value.data() + value.size();
    if (!whole || result < least || result > most)
        reject(column, fmt::format("a whole number from {} to {}", least, most));
    return result;
}

double CsvRow::number(std::string_view column) const {
    const auto& value = field(column);
    double result = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), result);
    const bool whole = error == std::errc() && end == value.data() + value.size();
    if (!whole || !std::isfinite(result)) reject(column, "a finite number");
    return result;
}

double CsvRow::non_negative(std::string_view column) const {
    const double result = number(column);
    if (result < 0) reject(column, "a number of at least 0");
    return result;
}

double CsvRow::positive(std::string_view column) const {
    const double result = number(column);
    if (result <= 0) reject(column, "a number above 0");
    return result;
}

void CsvRow::reject(std::string_view column, std::string_view allowed) const {
    const auto& value = field(column);
    fail(fmt::format("{}: found {}, allowed: {}", column, value.empty() ? "nothing" : quoted(value),
                     allowed));
}

void CsvRow::fail(std::string_view what) const {
    throw InputError(fmt::format("{}:{}: {}", printable(table_->file_), line(), what));
}

}  // namespace moehub
