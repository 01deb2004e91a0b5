/// How a paper is reproduced, whatever its figures are made of: each is a function that computes
/// what the paper publishes (presets/papers) and shows the cells behind it. Figures of simulated
/// layers look cells up; what they need is simulated once, by every reading.
#pragma once
#include "study/reproduce_published.hpp"

#include <moehub/layer.hpp>
#include <moehub/reproduce.hpp>
#include <moehub/system.hpp>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace moehub {

struct FigureResult {
    std::vector<PublishedNumber> numbers = {};
    std::vector<PublishedClaim> claims = {};
    std::vector<FigureTable> tables = {};
};

/// A reproduction with what is known before anything runs. Throws InputError for an unknown figure.
Reproduction begun(const Publication& paper, const ReproduceOptions& options);
bool is_wanted(const Reproduction& all, const std::string& figure);
void add(FigureResult figure, Reproduction& all);
/// The reproduction, finished. A quick run gives no reasons: its cells are not the paper's.
Reproduction ended(Reproduction all);

Reproduction reproduce_moetuner(const ReproduceOptions& options);
Reproduction reproduce_pangu(const ReproduceOptions& options);

// Papers whose figures are simulated layers.

/// What all simulations of a paper have in common.
struct PaperSetup {
    std::string machine;               ///< a preset
    std::vector<std::string> changes;  ///< as --set takes them; as model.KEY of every model
    std::vector<Reading> readings;     ///< at least one
    Software software = {};            ///< software of every system; unset: the system's own
    bool eager = true;                 ///< whole models: outside the MoE layers a host issues
                                       ///< operators one by one; false: graphs
    bool bound_scales = false;         ///< the paper's ideal adds up results on GPUs
    bool residual = true;              ///< the norm's kernel of sub-layers adds it, too
};

/// How figures get their simulations.
using Lookup = std::function<const ReproducedCell&(const CellKey&)>;

struct PaperFigure {
    std::string name;
    std::function<FigureResult(const Lookup&)> make;
    bool every_reading = true;  ///< false: only the first reading is asked
};

/// A figure over a paper's cells, or a few of them.
template <class Scope>
PaperFigure figure_of(std::string name, FigureResult (*make)(const Scope&, const Lookup&),
                      const Scope& scope, bool every_reading = true) {
    return {std::move(name), [make, scope](const Lookup& cell) { return make(scope, cell); },
            every_reading};
}

struct PaperOfCells {
    Publication paper;
    PaperSetup setup;
    std::vector<PaperFigure> figures;
};
// The papers, with all cells of each figure, or a few of them.
PaperOfCells moe_hub_cells(bool quick);
PaperOfCells dysharp_cells(bool quick);
PaperOfCells cais_cells(bool quick);

Reproduction reproduce_cells(const PaperOfCells& cells, const ReproduceOptions& options);

/// The cells that `ask` looks up, each once, in order of their keys; a layer that is also asked for
/// in training comes with that. What it looks up must not depend on what it is told: it gets empty
/// cells.
std::vector<CellKey> cells_asked(const std::function<void(const Lookup&)>& ask);

/// The machine, its changes and how the paper is read.
PaperSetup setup_of(const Publication& paper);

/// A layer of the paper's machine as it is read, and what the key asks for around it. A system that
/// cannot run it, or that there is not, leaves a refusal.
ReproducedCell simulate_cell(const PaperSetup& setup, const CellKey& key);

/// Simulates all cells; results are in the order of the keys.
std::vector<ReproducedCell> simulate_cells(const PaperSetup& setup,
                                           const std::vector<CellKey>& keys,
                                           const ReproduceOptions& options);

/// Finds cells among these by key and reading, a layer also in training; one that is not there is a
/// defect (std::logic_error). Refers to the cells.
Lookup lookup_in(const std::vector<ReproducedCell>& cells, const std::string& reading);

/// How long the wires of one GPU were at work, the busiest's: at any time those of the direction
/// that carried more count. No execution of the same steps, one after the other, takes less.
Ps busier_way(const std::vector<LinkUse>& links);

// Figures as tables of numbers: a system's leads over others, the means that are published of them,
// and what is claimed of them.

using Values = std::vector<std::optional<double>>;  ///< none: it could not run

/// How many times faster; nothing when one of the two did not run.
std::optional<double> faster(Ps slow, Ps fast);
/// A part's share of the whole; none where it did not run.
std::optional<double> share_of(double part, double whole, bool ran = true);

/// Means and the largest of the values that there are; none where there are none.
std::optional<double> mean_of(const Values& values);
std::optional<double> geometric_mean_of(const Values& values);
std::optional<double> largest_of(const Values& values);

/// The values of a column, rows of means aside.
Values column_of(const FigureTable& table, std::size_t column);

/// Adds a note to the table that this cell of this row could not run, if so.
void note_refusal(const std::vector<std::string>& labels, const ReproducedCell& cell,
                  FigureTable& table);

/// A system against others by one of a cell's times; of "ideal" it is the share that is reached.
struct Leads {
    std::string_view own;
    std::vector<std::string_view> others;
    Ps ReproducedCell::*time = &ReproducedCell::time;
};

/// A row of leads: cells that differ in their systems, and what tells them from other rows' cells.
struct LeadsRow {
    std::vector<std::string> labels;
    CellKey key;
};

/// A claim of a table of leads.
struct LeadsClaim {
    PublishedClaim (*check)(const Publication& paper, const FigureTable& table,
                            std::string_view what);
    const char* what;
};

/// A figure that is one table of leads. Columns: the system's own time, then its leads; who could
/// not run is named in the notes.
struct LeadsFigure {
    const char* name;
    std::string title;
    std::vector<std::string> labels;  ///< titles of what tells rows apart
    Leads leads;
    std::vector<LeadsRow> rows;
    std::vector<LeadsClaim> claims = {};
    bool means = false;  ///< means are published: rows "over X", "over X, largest", "share of X"
};
FigureResult make_leads(const Publication& paper, const LeadsFigure& figure, const Lookup& cell);
PaperFigure figure_of(const Publication& paper, LeadsFigure figure, bool every_reading = true);

/// The paper's mean beside ours of the values.
PublishedNumber published_mean(const Publication& paper, std::string_view figure,
                               std::string_view what, const Values& values);
/// Adds two rows, of every column that is neither time nor size: the geometric mean with the
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
