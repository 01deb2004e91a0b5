// Arrays and tables: ids of tokens, or counts, from .npy; counts from .csv.
#include "base/input_error.hpp"
#include "base/quantity.hpp"
#include "base/utf8.hpp"
#include "place/profile/profile_readers.hpp"

#include <algorithm>
#include <optional>

namespace moehub {
namespace {

/// Beyond these an array is not taken for ids by itself: no model comes near, counts do.
constexpr int kUsualTopK = 64;
constexpr int kUsualExperts = 4096;

template <class Value>
std::vector<double> counts_in(const NpyValues<Value>& values, int layers, int experts,
                              const std::string& file) {
    std::vector<double> counts(values.size());
    for (std::size_t at = 0; at < counts.size(); ++at) {
        const Value value = values[at];
        // A negative number becomes one far too large.
        if (static_cast<std::uint64_t>(value) > static_cast<std::uint64_t>(kMostCount)) {
            const std::size_t row = at / static_cast<std::size_t>(experts);
            fail_in(file, "step {}, layer {}, expert {}: found {}, allowed: 0 to 2^53",
                    row / static_cast<std::size_t>(layers), row % static_cast<std::size_t>(layers),
                    at % static_cast<std::size_t>(experts), +value);
        }
        counts[at] = static_cast<double>(value);
    }
    return counts;
}

void check_shape(const NpyArray& array, bool tokens, const std::string& file) {
    const auto& shape = array.shape();
    const std::size_t columns = shape.size() - 1;
    const bool fits = array.size() > 0 && shape[columns] <= kMostProfileExperts &&
                      shape[columns - 1] <= kMostProfileLayers &&
                      (columns == 1 || shape[0] < (std::int64_t{1} << 31));
    if (fits) return;
    fail_in(file, "found shape ({}), allowed: {}, layers 1 to {}, {} 1 to {}, {}",
            fmt::join(shape, ", "),
            tokens ? "(tokens, layers, top_k)" : "([steps,] layers, experts)", kMostProfileLayers,
            tokens ? "top_k" : "experts", kMostProfileExperts,
            tokens ? "tokens 1 to 2^31 - 1" : "steps 1 to 2^31 - 1");
}

RecordedCounts counts_in(const NpyArray& array, const std::string& file) {
    check_shape(array, false, file);
    const auto& shape = array.shape();
    RecordedCounts counts;
    counts.steps = shape.size() == 3 ? static_cast<int>(shape[0]) : 0;
    counts.layers = static_cast<int>(shape[shape.size() - 2]);
    counts.experts = static_cast<int>(shape.back());
    counts.counts = array.visit(
        [&](const auto& values) { return counts_in(values, counts.layers, counts.experts, file); });
    return counts;
}

RecordedTokens tokens_of(const NpyArray& array, int experts, bool guessed,
                         const std::string& file) {
    check_shape(array, true, file);
    RecordedTokens tokens;
    tokens.guessed = guessed;
    tokens.layers = static_cast<int>(array.shape()[1]);
    tokens.top_k = static_cast<int>(array.shape()[2]);
    tokens.experts = experts;
    if (experts > 0 && tokens.top_k > experts)
        fail_in(file,
                "found shape ({}), allowed: (tokens, layers, top_k), top_k at most the {} experts",
                fmt::join(array.shape(), ", "), experts);
    array.visit([&](const auto& values) { append(tokens, values, file); });
    return tokens;
}

/// Ids of an array that was found to hold ids; they must also look like ids.
RecordedTokens tokens_by_itself(const NpyArray& array, int experts, const std::string& file) {
    if (experts == 0 && array.shape()[2] > kUsualTopK)
        fail_in(file,
                "found shape ({}), which may be (tokens, layers, top_k) or (steps, layers, "
                "experts): say --profile-kind tokens|counts",
                fmt::join(array.shape(), ", "));
    RecordedTokens tokens = tokens_of(array, experts, experts == 0, file);
    if (experts == 0 && tokens.largest >= kUsualExperts)
        fail_in(file,
                "found {}, which may be an expert or a count: say --profile-kind tokens|counts",
                tokens.largest);
    return tokens;
}

/// Rows of equal sums but different numbers that make counts certain: ids of tokens agree by
/// chance in a quarter of rows at most, (1/4)^8.
constexpr int kConvincing = 8;

struct IdShape {
    std::size_t steps, layers, columns;
};

/// A row's numbers, ascending; empty where one is negative or too large for a count.
template <class Value>
std::vector<std::uint64_t> sorted_row(const NpyValues<Value>& values, std::size_t from,
                                      std::size_t columns) {
    constexpr std::uint64_t kMost = std::uint64_t{1} << 47;  // sums of a row cannot overflow
    std::vector<std::uint64_t> row(columns);
    for (std::size_t i = 0; i < columns; ++i) {
        row[i] = static_cast<std::uint64_t>(values[from + i]);
        if (row[i] > kMost) return {};
    }
    std::sort(row.begin(), row.end());
    return row;
}

/// Whether the array can be counts, and how many rows say so.
struct CountsSign {
    bool fits = false;
    int convincing = 0;
};

template <class Value>
CountsSign sign_of_counts(const NpyValues<Value>& values, const IdShape& shape) {
    CountsSign sign;
    std::vector<char> dense;  // [layer] in the steps so far: nothing counted
    for (std::size_t step = 0; step < shape.steps; ++step) {
        std::vector<char> empty(shape.layers, 0);
        std::vector<std::uint64_t> first;
        std::uint64_t sum = 0;
        for (std::size_t layer = 0; layer < shape.layers; ++layer) {
            const auto row =
                sorted_row(values, (step * shape.layers + layer) * shape.columns, shape.columns);
            if (row.empty()) return {};
            std::uint64_t own = 0;
            for (const std::uint64_t count : row) own += count;
            empty[layer] = own == 0;
            if (own == 0) continue;
            if (sum != 0 && own != sum) return {};
            if (sum == 0) first = row;
            if (row != first) ++sign.convincing;
            sum = own;
        }
        if (sum == 0) continue;
        if (dense.empty()) dense = empty;
        if (dense != empty) return {};
        sign.fits = true;
    }
    return sign;
}

/// Whether every row could be the experts of a token: distinct, or all zero (a dense layer).
template <class Value>
bool can_be_tokens(const NpyValues<Value>& values, const IdShape& shape) {
    for (std::size_t row = 0; row < shape.steps * shape.layers; ++row) {
        const auto ids = sorted_row(values, row * shape.columns, shape.columns);
        if (ids.back() > kMostProfileExperts) return false;
        if (ids.back() != 0 && std::adjacent_find(ids.begin(), ids.end()) != ids.end())
            return false;
    }
    return true;
}

/// What an array of three dimensions holds. Told by `experts` where given: counts have as many
/// columns. Otherwise counts add up, in every step, to the same sum in all layers (each token
/// chooses as often in each), which ids do not; and ids are distinct within a token, which counts
/// seldom are. Where both hold, counts need sums that agree in at least eight rows of different
/// numbers; anything less is refused with a line that names --profile-kind.
/// It fails safely: ids of real tokens have different sums in different layers, so that an array
/// with equal sums everywhere is hardly ever ids.
ArrayKind kind_of(const NpyArray& array, const ProfileOptions& options, const std::string& file) {
    const IdShape shape{at(array.shape()[0]), at(array.shape()[1]), at(array.shape()[2])};
    if (options.experts > 0)
        return shape.columns == at(options.experts) ? ArrayKind::counts : ArrayKind::tokens;
    if (shape.columns == 1) return ArrayKind::tokens;
    return array.visit([&](const auto& values) {
        const CountsSign counts = sign_of_counts(values, shape);
        if (!counts.fits) return ArrayKind::tokens;
        if (counts.convincing >= kConvincing || !can_be_tokens(values, shape))
            return ArrayKind::counts;
        fail_in(file,
                "found shape ({}), which may be (tokens, layers, top_k) or (steps, layers, "
                "experts): say --profile-kind tokens|counts",
                fmt::join(array.shape(), ", "));
    });
}

std::string_view without_blanks(std::string_view text) {
    const auto first = text.find_first_not_of(" \t\r");
    if (first == std::string_view::npos) return {};
    text = text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
    if (text.size() >= 2 && text.front() == '"' && text.back() == '"')
        text = text.substr(1, text.size() - 2);
    return text;
}

std::optional<double> number_in(std::string_view text) {
    const std::optional<double> number = take_number(text);
    return text.empty() ? number : std::nullopt;
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

Recording recording_of(const NpyArray& array, const ProfileOptions& options,
                       const std::string& file) {
    const std::size_t dimensions = array.shape().size();
    if (dimensions != 3 && (dimensions != 2 || options.kind == ArrayKind::tokens))
        fail_in(file, "found shape ({}), allowed: (tokens, layers, top_k){}",
                fmt::join(array.shape(), ", "),
                options.kind == ArrayKind::tokens
                    ? ""
                    : ", (layers, experts) or (steps, layers, experts)");
    if (dimensions == 2) return counts_in(array, file);
    switch (options.kind) {
        case ArrayKind::tokens:
            return tokens_of(array, options.experts, false, file);
        case ArrayKind::counts:
            return counts_in(array, file);
        case ArrayKind::by_itself:
            break;
    }
    check_shape(array, true, file);
    if (kind_of(array, options, file) == ArrayKind::counts) return counts_in(array, file);
    return tokens_by_itself(array, options.experts, file);
}

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
        fail_in(file, "found no row of counts, allowed: a row per layer, a column per expert");
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
