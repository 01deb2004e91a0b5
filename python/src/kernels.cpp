// Single collectives and kernels.
#include "bindings.hpp"
#include "report/document.hpp"
#include "request/collective_arguments.hpp"
#include "request/predict_arguments.hpp"

namespace moehub::python {
namespace {

py::object collective(const py::dict& keywords, const SizedMachine* machine) {
    CollectiveArguments arguments;
    fill(collective_options(arguments), keywords);
    if (machine != nullptr) {
        arguments.machine = machine->whole.name;
        arguments.settings = machine->whole.settings;
        if (machine->gpus && !arguments.gpus) arguments.gpus = std::to_string(*machine->gpus);
    }
    Json json;
    {
        const py::gil_scoped_release unlocked;
        const CollectiveRun done =
            run_collective(arguments, machine != nullptr ? &machine->whole : nullptr);
        json = document("collective", collective_json(done, arguments));
    }
    return to_python(json);
}

py::object predict_kernel(const py::dict& keywords, const Loaded<Gpu>* card) {
    PredictArguments arguments;
    fill(predict_options(arguments), keywords);
    if (card != nullptr) {
        arguments.gpu = card->name;
        arguments.settings = card->settings;
    }
    return to_python(document("predict", predict_json(arguments, predict(arguments, card))));
}

}  // namespace

void bind_kernels(py::module_& module) {
    module.def("collective", &collective, "A command's document: collective.");
    module.def("predict", &predict_kernel, "A command's document: predict.");
}

}  // namespace moehub::python
