#include "base/utf8.hpp"
#include "place/profile/profile_readers.hpp"

#include <moehub/error.hpp>

#include <fmt/format.h>

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
            fail_in(file, fmt::format("step {}, layer {}, expert {}: found {}, allowed: 0 to 2^53",
                                      row / static_cast<std::size_t>(layers),
                                      row % static_cast<std::size_t>(layers),
                                      at % static_cast<std::size_t>(experts), +value));
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
    fail_in(file, fmt::format("found shape ({}), allowed: {}, layers 1 to {}, {} 1 to {}, {}",
                              fmt::join(shape, ", "),
                              tokens ? "(tokens, layers, top_k)" : "([steps,] layers, experts)",
                              kMostProfileLayers, tokens ? "top_k" : "experts", kMostProfileExperts,
                              tokens ? "tokens 1 to 2^31 - 1" : "steps 1 to 2^31 - 1"));
}

RecordedCounts counts_of(const NpyArray& array, const std::string& file) {
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
        fail_in(file, fmt::format("found shape ({}), allowed: (tokens, layers, top_k), top_k at "
                                  "most the {} experts",
                                  fmt::join(array.shape(), ", "), experts));
    array.visit([&](const auto& values) { append(tokens, values, file); });
    return tokens;
}

/// Ids that were found out to be such must also look like them.
RecordedTokens tokens_by_itself(const NpyArray& array, int experts, const std::string& file) {
    if (experts == 0 && array.shape()[2] > kUsualTopK)
        fail_in(file, fmt::format("found shape ({}), which may be (tokens, layers, top_k) or "
                                  "(steps, layers, experts): say --profile-kind tokens|counts",
                                  fmt::join(array.shape(), ", ")));
    RecordedTokens tokens = tokens_of(array, experts, experts == 0, file);
    if (experts == 0 && tokens.largest >= kUsualExperts)
        fail_in(file, fmt::format("found {}, which may be an expert or a count: say "
                                  "--profile-kind tokens|counts",
                                  tokens.largest));
    return tokens;
}

}  // namespace

Recording recording_of(const NpyArray& array, const ProfileOptions& options,
                       const std::string& file) {
    const std::size_t dimensions = array.shape().size();
    if (dimensions != 3 && (dimensions != 2 || options.kind == ArrayKind::tokens))
        fail_in(file, fmt::format("found shape ({}), allowed: (tokens, layers, top_k){}",
                                  fmt::join(array.shape(), ", "),
                                  options.kind == ArrayKind::tokens
                                      ? ""
                                      : ", (layers, experts) or (steps, layers, experts)"));
    if (dimensions == 2) return counts_of(array, file);
    switch (options.kind) {
        case ArrayKind::tokens:
            return tokens_of(array, options.experts, false, file);
        case ArrayKind::counts:
            return counts_of(array, file);
        case ArrayKind::by_itself:
            break;
    }
    check_shape(array, true, file);
    if (kind_of(array, options, file) == ArrayKind::counts) return counts_of(array, file);
    return tokens_by_itself(array, options.experts, file);
}

}  // namespace moehub
