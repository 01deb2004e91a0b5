// The rule is told in profile_readers.hpp. It fails safely: ids of real tokens have different sums
// in different layers, so that an array with equal sums everywhere is hardly ever ids.
#include "place/profile/profile_readers.hpp"

#include <moehub/error.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace moehub {
namespace {

/// Rows of equal sums but different numbers that make counts certain: ids of tokens agree by
/// chance in a quarter of rows at most, (1/4)^8.
constexpr int kConvincing = 8;

struct Shape {
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
CountsSign sign_of_counts(const NpyValues<Value>& values, const Shape& shape) {
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
bool can_be_tokens(const NpyValues<Value>& values, const Shape& shape) {
    for (std::size_t row = 0; row < shape.steps * shape.layers; ++row) {
        const auto ids = sorted_row(values, row * shape.columns, shape.columns);
        if (ids.back() > kMostProfileExperts) return false;
        if (ids.back() != 0 && std::adjacent_find(ids.begin(), ids.end()) != ids.end())
            return false;
    }
    return true;
}

}  // namespace

ArrayKind kind_of(const NpyArray& array, const ProfileOptions& options, const std::string& file) {
    const Shape shape{static_cast<std::size_t>(array.shape()[0]),
                      static_cast<std::size_t>(array.shape()[1]),
                      static_cast<std::size_t>(array.shape()[2])};
    if (options.experts > 0)
        return shape.columns == static_cast<std::size_t>(options.experts) ? ArrayKind::counts
                                                                          : ArrayKind::tokens;
    if (shape.columns == 1) return ArrayKind::tokens;
    return array.visit([&](const auto& values) {
        const CountsSign counts = sign_of_counts(values, shape);
        if (!counts.fits) return ArrayKind::tokens;
        if (counts.convincing >= kConvincing || !can_be_tokens(values, shape))
            return ArrayKind::counts;
        fail_in(file, fmt::format("found shape ({}), which may be (tokens, layers, top_k) or "
                                  "(steps, layers, experts): say --profile-kind tokens|counts",
                                  fmt::join(array.shape(), ", ")));
    });
}

}  // namespace moehub
