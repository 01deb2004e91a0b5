/// Plans of training runs for people and for programs.
#pragma once
#include "base/json.hpp"
#include "report/text_style.hpp"

#include <moehub/plan.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace moehub {

/// What was asked for, in the user's words where the run has lost them.
struct PlanCase {
    TrainingRun run;
    Machine whole;  ///< that the run's is part of
    std::string model_name;
    std::string machine_name;
    std::string trainer_name;
    std::vector<std::string> settings;  ///< --set
    std::string fixed;
    std::vector<std::string> systems;
};

/// A part of a step or of a GPU's memory.
struct NamedPart {
    std::string_view name;  ///< for people
    std::string_view key;   ///< for programs
    double value = 0;       ///< seconds or bytes
    std::string_view mark;  ///< in bars
};

std::vector<NamedPart> parts_of(const StepParts& parts);
std::vector<NamedPart> parts_of(const StepMemory& memory);

/// Which model on what, how it is trained, how FLOPs are counted.
std::string head_text(const PlanCase& what, double flops_per_token);

/// The best layouts, what the time of the first few goes to, the memory of the first, the front,
/// and how many were looked at.
std::string plan_text(const PlanCase& what, const Plan& plan, const TextStyle& style);

/// One layout in full; `picture`: its pipeline, or empty.
std::string explained_text(const PlanCase& what, const TrainingStep& step,
                           const std::string& picture, const TextStyle& style);

/// Times in seconds, sizes in bytes, shares as fractions.
Json plan_json(const PlanCase& what, const Plan& plan);
Json plan_json(const PlanCase& what, const TrainingStep& step);

/// Parts of the texts. A layout in lines of at most `width` columns, where its keys allow that.
std::vector<std::string> layout_lines(const ParallelLayout& layout, std::size_t width);
std::string layouts_table(const std::vector<TrainingStep>& steps, const TextStyle& style);
std::string breakdown_text(const std::vector<TrainingStep>& steps, const TextStyle& style);
std::string memory_text(const TrainingStep& step, const TextStyle& style);
/// One micro-batch in each stage, all pieces together.
std::string stages_text(const TrainingStep& step, const TextStyle& style);

}  // namespace moehub
