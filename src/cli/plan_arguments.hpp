/// What `moehub plan` is asked.
#pragma once
#include "cli/command.hpp"
#include "cli/plan_shapes.hpp"
#include "report/plan_report.hpp"

#include <optional>
#include <string>
#include <vector>

namespace moehub {

/// As typed; text, so that every mistake gets a message of ours.
struct PlanArguments {
    std::string model = "mixtral-8x22b";
    std::string machine = "h100-cluster";
    std::string gpus = "128";
    std::optional<std::string> sequence;
    std::string global_batch = "256";
    std::string precision = "bf16";
    std::string trainer = "megatron-26.04";
    std::optional<std::string> systems;
    std::string routing = "balanced";
    std::string fixed;
    std::string top = "10";
    std::optional<std::string> explain;
    std::optional<std::string> rank;
    ShapeArguments shapes;
    std::optional<std::string> threads;
    std::vector<std::string> settings;
    bool no_mtp = false;
    bool json = false;
    std::string output;
};

std::vector<Option> plan_options(PlanArguments& arguments);

/// Loads what is named. Throws InputError.
PlanCase load_plan(const PlanArguments& arguments);

/// Throws InputError for keys and systems that there are not.
PlanOptions search_options(const PlanArguments& arguments, const PlanCase& what);

}  // namespace moehub
