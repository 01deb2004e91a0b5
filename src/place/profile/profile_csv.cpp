#include "base/input_error.hpp"
#include "base/quantity.hpp"
#include "base/utf8.hpp"
#include "place/profile/profile_readers.hpp"

#include <algorithm>
#include <optional>

namespace moehub {
namespace {

std::string_view without_blanks(std::string_view text) {
    const auto first = text.find_first_not_of(" \t\r");
    if (first == std::string_view::npos) return {};
    text = text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
    if (text.size() >= 2 && text.front() == '"' && text.back() == '"')
        text = text.substr(1, text.size() - 2);
    return text;
}

std::optional<double> number_in(std::string_view text) {
    const auto decimal = take_decimal(text);
    return decimal && text.empty() ? to_double(*decimal) : std::nullopt;
}

/// Walks the text once; one call of next() is one row.
class Rows {
  public:
    Rows(std::string_view text, const std::string& file) : rest_(text), file_(file) {
        if (rest_.starts_with("\xEF\xBB\xBF")) rest_.remove_prefix(3);
    }

    /// Fields of the next row that is not blank; false at the end of the text.
    bool next(std::vector<std::string_view>& fields) {
        fields.clear();
        while (!rest_.empty()) {
            const auto end = std::min(rest_.find('\n'), rest_.size());
            std::string_view row = rest_.substr(0, end);
            rest_.remove_prefix(std::min(end + 1, rest_.size()));
            ++line_;
            if (without_blanks(row).empty()) continue;
            for (std::size_t comma = 0; comma != std::string_view::npos;) {
                comma = row.find(',');
                fields.push_back(without_blanks(row.substr(0, comma)));
                if (comma != std::string_view::npos) row.remove_prefix(comma + 1);
                if (fields.size() > kMostProfileExperts + 1u) fail("found too many columns");
            }
            return true;
        }
        return false;
    }

    [[noreturn]] void fail(std::string_view what) const {
        throw input_error("{}:{}: {}", printable(file_), line_, what);
    }

  private:
    std::string_view rest_;
    const std::string& file_;
    int line_ = 0;
};

/// "", "layer", "Layer id": the column holds numbers of layers.
bool names_layers(std::string_view field) {
    return field.empty() || field.starts_with("layer") || field.starts_with("Layer");
}

double count_in(std::string_view field, std::size_t column, const Rows& rows) {
    const auto count = number_in(field);
    if (!count || *count < 0 || *count > static_cast<double>(kMostCount))
        rows.fail(fmt::format("column {}: found {}, allowed: a count, 0 to 2^53", column + 1,
                              moehub::quoted(field)));
    return *count;
}

void add_number(std::string_view field, std::vector<int>& numbers, const Rows& rows) {
    const auto number = number_in(field);
    const int least = numbers.empty() ? 0 : numbers.back() + 1;
    if (!number || *number < least || *number >= kMostProfileLayers ||
        *number != static_cast<int>(*number))
        rows.fail(fmt::format("layer: found {}, allowed: a whole number, ascending, {} to {}",
                              moehub::quoted(field), least, kMostProfileLayers - 1));
    numbers.push_back(static_cast<int>(*number));
}

}  // namespace

RecordedCounts parse_counts_csv(std::string_view text, const std::string& file) {
    Rows rows(text, file);
    std::vector<std::string_view> fields;
    RecordedCounts counts;
    bool more = rows.next(fields), numbered = false;
    const std::size_t columns = fields.size();
    if (more && !number_in(fields.front())) {
        numbered = names_layers(fields.front());
        more = rows.next(fields);
    }
    if (!more)
        fail_in(file,
                "found no row of counts, allowed: a row per layer, a column per "
                "expert");
    const std::size_t first = numbered ? 1 : 0;
    counts.experts = static_cast<int>(columns - first);
    if (counts.experts < 1 || counts.experts > kMostProfileExperts)
        rows.fail(fmt::format("found {} columns of experts, allowed: 1 to {}", counts.experts,
                              kMostProfileExperts));
    for (; more; more = rows.next(fields)) {
        if (fields.size() != columns)
            rows.fail(fmt::format("found {} fields, the first row has {}", fields.size(), columns));
        if (++counts.layers > kMostProfileLayers)
            rows.fail(fmt::format("found more than {} layers", kMostProfileLayers));
        if (numbered) add_number(fields.front(), counts.which.numbers, rows);
        for (std::size_t column = first; column < columns; ++column)
            counts.counts.push_back(count_in(fields[column], column, rows));
    }
    return counts;
}

}  // namespace moehub
