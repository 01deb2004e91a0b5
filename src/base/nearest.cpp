#include "base/nearest.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace moehub {
namespace {

/// Levenshtein distance, row by row.
std::size_t edits(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i + 1;
        for (std::size_t j = 0; j < b.size(); ++j) {
            const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
            diagonal = row[j + 1];
            row[j + 1] = std::min({row[j] + 1, row[j + 1] + 1, replaced});
        }
    }
    return row.back();
}

}  // namespace

std::string nearest(std::string_view name, std::span<const std::string> known) {
    constexpr std::size_t kLongest = 80;  // longer input is no misspelling, and costs time
    if (name.size() > kLongest) return "";
    for (const std::string& candidate : known)
        if (name.size() >= 3 && candidate.starts_with(name)) return candidate;
    std::string best;
    std::size_t fewest = 0;
    for (const std::string& candidate : known) {
        const std::size_t distance = edits(name, candidate);
        const std::size_t allowed = std::max<std::size_t>(1, candidate.size() / 3);
        if (distance > allowed || (!best.empty() && distance >= fewest)) continue;
        best = candidate;
        fewest = distance;
    }
    return best;
}

std::string did_you_mean(std::string_view name, std::span<const std::string> known) {
    const std::string best = nearest(name, known);
    return best.empty() ? "" : "; did you mean \"" + best + "\"?";
}

}  // namespace moehub
