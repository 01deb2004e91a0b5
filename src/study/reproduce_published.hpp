/// What papers publish, as data: presets/papers/PAPER.toml has a table for each figure, in it its
/// title, where in the paper it is, and a row for each number or claim, "what" = {…}:
///
///   value   as published
///   kind    of the value: "ratio" (where none is given), "share" of 1, "time" in µs, "size"
///   claim   true: the paper says it without a number
///   where   in the paper, in words, where it is not where the rest of the figure is
///   reason  why ours is off by more than 10 %, or why the claim does not hold: a name under
///           [reasons], a text without a measured figure, which would outlive the model
///   holds   [least, most] of ours / published that the reason explains: the ratio when it was
///           written with about 0.05 on either side (5 % above 1). Outside of it the reason is not
///           given, and tests fail: what changed must be looked into.
///
/// Code computes ours and looks rows up by figure and what. A row that no code asks for is a
/// defect, as is a lookup that finds none (std::logic_error).
#pragma once
#include "base/toml.hpp"

#include <moehub/reproduce.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace moehub {

struct PublishedRow {
    std::string figure;
    std::string what;
    bool claim = false;
    std::optional<double> value = {};
    NumberKind kind = NumberKind::ratio;
    std::string where = {};
    std::string reason = {};  ///< text of the reason
    std::optional<RatioRange> holds = {};
};

/// A paper's file.
struct Publication {
    std::string name;
    std::string title;
    std::string subject;  ///< subject of its line in lists
    std::string arxiv;
    std::string venue = {};
    Means means = Means::none;
    std::string machine = {};               ///< a preset; empty: the code has its own
    std::vector<std::string> changes = {};  ///< changes as --set takes them; of models as model.KEY
    std::vector<std::string> setup = {};
    std::vector<Reading> readings = {};
    std::vector<NamedFigure> figures = {};
    std::vector<PublishedRow> rows = {};

    /// The row of a figure; null where there is none.
    const PublishedRow* find(std::string_view figure, std::string_view what) const;

    /// The row beside ours; `reason` is filled in where ours differs.
    PublishedNumber number(std::string_view figure, std::string_view what, double ours,
                           double geometric) const;
    PublishedNumber number(std::string_view figure, std::string_view what, double ours) const {
        return number(figure, what, ours, ours);
    }
    PublishedClaim claim(std::string_view figure, std::string_view what, bool holds,
                         std::string found = {}) const;
};

/// The paper's file as the binary has it.
const Publication& publication(std::string_view paper);

/// A paper's file as text, read. Throws InputError, one line with file and key.
Publication parse_publication(std::string_view text, const std::string& name, const Origin& origin);

}  // namespace moehub
