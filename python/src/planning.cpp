// Training runs: the fastest parallel layouts, or one in full.
#include "bindings.hpp"
#include "report/document.hpp"
#include "request/plan_answer.hpp"
#include "request/plan_arguments.hpp"

namespace moehub::python {
namespace {

Json document_of(const PlanArguments& arguments) {
    const PlanCase what = load_plan(arguments);
    if (arguments.explain) {
        TrainingClock clock(what.run);
        return document("plan", plan_json(what, clock.exact(explained_layout(*arguments.explain))));
    }
    const PlanOptions options = search_options(arguments, what);
    const Plan plan = plan_training(what.run, options);
    require_fit(what, options, plan);
    return document("plan", plan_json(what, plan));
}

py::object plan(const py::dict& keywords) {
    PlanArguments arguments;
    fill(plan_options(arguments), keywords);
    Json json;
    {
        const py::gil_scoped_release unlocked;
        json = document_of(arguments);
    }
    return to_python(json);
}

}  // namespace

void bind_planning(py::module_& module) {
    module.def("plan", &plan, "A command's document: plan.");
}

}  // namespace moehub::python
