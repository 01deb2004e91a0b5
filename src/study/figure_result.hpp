/// What a figure of a paper says here, and why it differs.
#pragma once
#include <moehub/reproduce.hpp>

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace moehub {

struct FigureResult {
    std::vector<PublishedNumber> numbers;
    std::vector<PublishedClaim> claims;
    std::vector<FigureTable> tables;
};

/// On which side of the paper's number ours lies; a claim that does not hold lies below.
enum class Side { above, below };

/// Why, in words, and without a measured figure, which would outlive the model it was measured
/// with. An empty `what` stands for every number of the figure that has no reason of its own.
struct Reason {
    std::string_view figure;
    std::string_view what;
    Side side;
    std::string_view text;
};

/// kNoExplanation where there is none among them.
std::string reason_among(std::span<const Reason> reasons, std::string_view figure,
                         std::string_view what, Side side);

using ReasonOf = std::function<std::string(std::string_view, std::string_view, Side)>;
/// Gives every number that is off and every claim that does not hold its reason, and adds the
/// figure to the others.
void add_explained(FigureResult result, const ReasonOf& reason, Reproduction& all);

/// Throws InputError unless it is one of them, or nothing.
void check_figure(const std::optional<std::string>& name, const std::vector<NamedFigure>& known);

}  // namespace moehub
