/// Answers about training runs: one file for each way of asking.
#pragma once
#include "report/answer.hpp"
#include "study/training_runs.hpp"

#include <moehub/plan.hpp>
#include <moehub/shape_search.hpp>
#include <moehub/training.hpp>

#include <memory>
#include <string>
#include <vector>

namespace moehub {

/// What is trained, and what it was asked for as.
struct PlanCase {
    TrainingRun run;
    std::string model_name;  ///< preset or file
    std::string machine_name;
    std::string trainer_name;
    Machine whole;                      ///< machine that the run's machine is part of
    std::vector<std::string> settings;  ///< KEY=VALUE that changed any of them
    PartialLayout fixed = {};
    std::vector<std::string> systems = {};

    Answer answer() const;  ///< lead, facts and configuration, without sections
};

Answer searched_answer(const PlanCase& what, const Plan& plan);
/// One layout in full; the clock, which has the run, draws its pipeline.
Answer explained_answer(const PlanCase& what, std::shared_ptr<TrainingClock> clock,
                        const ParallelLayout& layout);
Answer shapes_answer(const PlanCase& what, const ShapeSearchOptions& options,
                     const ShapeSearch& found);
Answer ranked_answer(const RunRanking& ranking);

// Steps of training as tables and charts.

using Steps = std::vector<TrainingStep>;

/// A row for each step, with numbers ("rank") that charts repeat.
Table layouts_table(const std::string& key, const Steps& steps);
/// Shares of a step's parts, a column for each.
Table breakdown_table(const Steps& steps);
Table seconds_table(const TrainingStep& step);

/// Parts of the steps of such a table; `category` is the column that names a bar.
BarChart time_chart(const Table& table, const std::string& title, const std::string& category);
/// Steps' times for terminals, by what their parts are.
BarChart kinds_chart(const Steps& steps);

/// The memory of one step; its chart has all steps of the table.
Section memory_section(const TrainingStep& step, const Table& all, const std::string& category,
                       Reader table);
/// What each system makes of the run with the layout that suits it best.
Section systems_section(const Steps& steps);
Section front_section(const Steps& front);

}  // namespace moehub
