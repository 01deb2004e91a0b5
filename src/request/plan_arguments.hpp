/// What `moehub plan` is asked.
#pragma once
#include "report/plan_report.hpp"
#include "request/html_output.hpp"
#include "request/option.hpp"
#include "request/plan_shapes.hpp"

#include <optional>
#include <string>
#include <vector>

namespace moehub {

/// As typed; text, so that every mistake gets a message of ours. What is not typed is a run of
/// Mixtral, and of Pangu Ultra MoE where shapes are searched.
struct PlanArguments {
    std::optional<std::string> model;
    std::optional<std::string> machine;
    std::optional<std::string> gpus;
    std::optional<std::string> sequence;
    std::optional<std::string> global_batch;
    std::string precision = "bf16";
    std::optional<std::string> trainer;
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
    HtmlOutput html;
};

std::vector<Option> plan_options(PlanArguments& arguments);

/// Throws InputError when anything is typed beside --rank that its runs say themselves.
void require_rank_alone(const PlanArguments& arguments);

/// Loads what is named. Throws InputError.
PlanCase load_plan(const PlanArguments& arguments);

/// Throws InputError for keys and systems that there are not.
PlanOptions search_options(const PlanArguments& arguments, const PlanCase& what);

}  // namespace moehub
