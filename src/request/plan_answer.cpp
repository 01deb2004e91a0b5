#include "request/plan_answer.hpp"

#include "report/table.hpp"

#include <moehub/compare.hpp>
#include <moehub/error.hpp>

#include <fmt/format.h>

namespace moehub {
namespace {

/// One line: by how much the smallest misses, and what would do.
std::string nothing_fits(const PlanCase& what, const PlanOptions& options, const Plan& plan) {
    const TrainingStep& least = plan.nearest.front();
    const bool here = least.memory.sum() > least.capacity;
    const double memory = here ? least.memory.sum() : least.memory.host;
    return fmt::format(
        "nothing fits: of {} parallel layouts the smallest, {}, takes {} {}, {} more than it has; "
        "{}",
        grouped(static_cast<std::int64_t>(plan.layouts)), to_text(least.layout), byte_size(memory),
        here ? "a GPU" : "of the host's memory for each GPU",
        byte_size(memory - (here ? least.capacity : least.host_capacity)),
        what_would_fit(what.run, options, what.whole));
}

}  // namespace

void require_fit(const PlanCase& what, const PlanOptions& options, const Plan& plan) {
    if (plan.best.empty()) throw InputError(nothing_fits(what, options, plan));
}

ParallelLayout explained_layout(const std::string& text) {
    ParallelLayout layout;
    try {
        if (text.empty())
            throw InputError("found nothing, allowed: KEY=VALUE, as in tp=2,pp=8,ep=8");
        layout = parse_parallel_layout(text);
        if (!layout.system.empty()) check_systems({layout.system});
    } catch (const InputError& error) {
        throw InputError(fmt::format("--explain: {}", error.what()));
    }
    return layout;
}

}  // namespace moehub
