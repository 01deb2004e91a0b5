/// Steps of training as tables and charts.
#pragma once
#include "report/answer.hpp"

#include <moehub/training.hpp>

#include <string>
#include <vector>

namespace moehub {

using Steps = std::vector<TrainingStep>;

/// As they come, with numbers ("rank") that charts repeat.
Table layouts_table(const std::string& key, const Steps& steps);
/// Shares of a step's parts, a column for each.
Table breakdown_table(const Steps& steps);
Table seconds_table(const TrainingStep& step);

/// Parts of the steps of such a table; `category` is the column that names a bar.
BarChart time_chart(const Table& table, const std::string& title, const std::string& category);
/// The same for terminals, by what parts are.
BarChart kinds_chart(const Steps& steps);

/// Of one step; its chart has all of the table's.
Section memory_section(const TrainingStep& step, const Table& all, const std::string& category,
                       Reader table);
/// What each system makes of the run with the layout that suits it best.
Section systems_section(const Steps& steps);
Section front_section(const Steps& front);

}  // namespace moehub
