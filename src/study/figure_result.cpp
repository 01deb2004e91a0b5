#include "study/figure_result.hpp"

#include "base/nearest.hpp"
#include "base/quantity.hpp"

#include <moehub/error.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

constexpr double kTolerance = 0.1;

template <class Item>
void append(std::vector<Item>& all, std::vector<Item>& some) {
    std::move(some.begin(), some.end(), std::back_inserter(all));
}

}  // namespace

bool PublishedNumber::as_published() const {
    return as_published(0);
}

bool PublishedNumber::as_published(std::size_t reading) const {
    return is_read(reading) && std::abs(read(reading) / paper - 1) <= kTolerance;
}

std::string reason_among(std::span<const Reason> reasons, std::string_view figure,
                         std::string_view what, Side side) {
    std::string_view of_figure;
    for (const Reason& one : reasons) {
        if (one.figure != figure || one.side != side) continue;
        if (one.what == what) return std::string(one.text);
        if (one.what.empty()) of_figure = one.text;
    }
    return std::string(of_figure.empty() ? kNoExplanation : of_figure);
}

void add_explained(FigureResult result, const ReasonOf& reason, Reproduction& all) {
    for (PublishedNumber& one : result.numbers)
        if (!one.as_published())
            one.reason =
                reason(one.figure, one.what, one.ours > one.paper ? Side::above : Side::below);
    for (PublishedClaim& one : result.claims)
        if (!one.holds) one.reason = reason(one.figure, one.what, Side::below);
    append(all.numbers, result.numbers);
    append(all.claims, result.claims);
    append(all.tables, result.tables);
}

void check_figure(const std::optional<std::string>& name, const std::vector<NamedFigure>& known) {
    if (!name) return;
    std::vector<std::string> names;
    for (const NamedFigure& figure : known) names.push_back(figure.name);
    if (std::find(names.begin(), names.end(), *name) != names.end()) return;
    throw InputError(fmt::format("figure: found {}, allowed: {}{}", moehub::quoted(*name),
                                 fmt::join(names, ", "), did_you_mean(*name, names)));
}

}  // namespace moehub
