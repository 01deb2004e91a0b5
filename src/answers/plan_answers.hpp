/// Answers about training runs: one file for each way of asking.
#pragma once
#include "report/answer.hpp"
#include "study/rank_runs.hpp"

#include <moehub/plan.hpp>
#include <moehub/shape_search.hpp>

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
    Machine whole;                      ///< that the run's machine is part of
    std::vector<std::string> settings;  ///< KEY=VALUE that changed any of them
    PartialLayout fixed = {};
    std::vector<std::string> systems = {};

    Answer answer() const;  ///< lead, facts and configuration, without sections
};

Answer searched_answer(const PlanCase& what, const Plan& plan);
/// Of one layout; the clock, which has the run, draws its pipeline.
Answer explained_answer(const PlanCase& what, std::shared_ptr<TrainingClock> clock,
                        const ParallelLayout& layout);
Answer shapes_answer(const PlanCase& what, const ShapeSearchOptions& options,
                     const ShapeSearch& found);
Answer ranked_answer(const RunRanking& ranking);

}  // namespace moehub
