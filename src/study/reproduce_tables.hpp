/// Figures as tables of numbers, the same way for all papers: a system's leads over others, the
/// means that are published of them, and what is claimed of them.
#pragma once
#include "study/reproduce_paper.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace moehub {

using Values = std::vector<std::optional<double>>;  ///< nothing: it could not run

/// How many times faster; nothing when one of the two did not run.
std::optional<double> faster(Ps slow, Ps fast);
/// Nothing where what they are of did not run.
std::optional<double> share_of(double part, double whole, bool ran = true);

/// Of what there is; nothing when that is nothing.
std::optional<double> mean_of(const Values& values);
std::optional<double> geometric_mean_of(const Values& values);
std::optional<double> largest_of(const Values& values);

/// One column, rows of means aside.
Values column_of(const FigureTable& table, std::size_t column);

/// A system against others by one of a cell's times; of "ideal" it is the share that is reached.
struct Leads {
    std::string_view own;
    std::vector<std::string_view> others;
    Ps ReproducedCell::*time = &ReproducedCell::time;
};

/// Columns: the system's own time, then its leads. `labels` are the titles of what tells rows
/// apart.
FigureTable leads_table(const Leads& leads, std::string figure, std::string title,
                        std::vector<std::string> labels);
/// A row of it, of cells that differ in their systems; who could not run is named in the notes.
void add_leads(const Leads& leads, std::vector<std::string> labels, CellKey key, const Lookup& cell,
               FigureTable& table);
/// Notes of a table: this cell of this row could not run, if so.
void note_refusal(const std::vector<std::string>& labels, const ReproducedCell& cell,
                  FigureTable& table);

/// The paper's mean of these.
PublishedNumber published_mean(const Publication& paper, std::string_view figure,
                               std::string_view what, const Values& values);
/// What is published of the columns of ratios: rows "over X", means, and "over X, largest".
std::vector<PublishedNumber> published_leads(const Publication& paper, const FigureTable& table);
/// Two rows at the end, of every column that is neither time nor size: the geometric mean with the
/// mean or the largest, whichever the paper has.
void add_means(const Publication& paper, FigureTable& table);

/// A claim that every ratio of the table is above 1.
PublishedClaim always_ahead(const Publication& paper, const FigureTable& table,
                            std::string_view what);
/// Rows that share their first labels, all but the last, follow one another from small to large. A
/// claim that in each such series the lead, the geometric mean over a row's baselines, grows with
/// every step.
PublishedClaim lead_grows(const Publication& paper, const FigureTable& table,
                          std::string_view what);

}  // namespace moehub
