// Whole models under several systems.
#include "bindings.hpp"
#include "report/document.hpp"
#include "request/model_arguments.hpp"

namespace moehub::python {
namespace {

/// The model's own beside its layer's.
std::vector<Option> options_of(ModelArguments& arguments) {
    std::vector<Option> options{
        {"--systems", &arguments.systems, "", ""},
        {"--sequence", &arguments.sequence, "", ""},
        {"--threads", &arguments.threads, "", ""},
        {"--attention-tp", &arguments.attention_gpus, "", ""},
        {"--attention-system", &arguments.attention_system, "", "", {.needs = "--attention-tp"}},
        {"--training", &arguments.training, "", ""},
        {"--graphs", &arguments.graphs, "", ""},
        {"--overlap-gradients", &arguments.overlap_gradients, "", ""},
        {"--kernels", &arguments.layer.kernels, "", ""},
        baseline_option(arguments.layer.baseline),
    };
    add_layer_options(options, arguments.layer);
    add_software_options(options, arguments.layer);
    return options;
}

Json document_of(const ModelArguments& arguments, const LayerNouns& given) {
    if (is_dense(arguments.layer, given)) {
        DenseCase model = load_dense_model(arguments, given);
        const TpCase& layer = model.layer;
        model.times = simulate_dense_models({layer.machine, layer.model, layer.tokens},
                                            load_dense_systems(arguments, given), model.options);
        return document("model", model_json(model));
    }
    ModelCase model = load_moe_model(arguments, given);
    const std::vector<SystemSpec> systems = load_systems(arguments, model, given);
    model.times = simulate_models(model.layer.input(), systems, model.options);
    return document("model", model_json(model));
}

py::object time_model(py::dict keywords) {
    GivenObjects given;
    take_objects(keywords, given);
    ModelArguments arguments;
    fill(options_of(arguments), keywords);
    Json json;
    {
        const py::gil_scoped_release unlocked;
        json = document_of(arguments, given.nouns);
    }
    return to_python(json);
}

}  // namespace

void bind_models(py::module_& module) {
    module.def("time_model", &time_model, "A command's document: model.");
}

}  // namespace moehub::python
