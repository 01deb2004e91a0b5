/// Tables of DySHARP's time and its leads over others.
#pragma once
#include "study/figure_table.hpp"
#include "study/reproduce_dysharp.hpp"

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace moehub {

/// Columns: DySHARP's time, then how many times faster it is than each of these.
FigureTable leads_table(std::string figure, std::string title, std::vector<std::string> labels,
                        std::span<const std::string_view> baselines);

/// A row of such a table by one of a cell's times; who could not run is named in the notes.
using CellUnder = std::function<const ReproducedCell&(std::string_view system)>;
void add_leads(std::vector<std::string> labels, std::span<const std::string_view> baselines,
               Ps ReproducedCell::*time, const CellUnder& cell, FigureTable& table);

/// Notes of a table: this cell of this row could not run, if so.
void note_refusal(const std::vector<std::string>& labels, const ReproducedCell& cell,
                  FigureTable& table);

/// Rows that share their first labels, all but the last, follow one another from small to large. A
/// claim that in each such series the lead, the geometric mean over a row's baselines, grows with
/// every step.
PublishedClaim lead_grows(const FigureTable& table, std::string what);

}  // namespace moehub
