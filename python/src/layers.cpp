// Layers under one system or several.
#include "bindings.hpp"
#include "report/comparison.hpp"
#include "report/document.hpp"
#include "report/tp_comparison.hpp"
#include "request/layer_arguments.hpp"
#include "request/values.hpp"
#include "results.hpp"
#include "study/usual_systems.hpp"

#include <moehub/compare.hpp>
#include <moehub/tp_compare.hpp>

namespace moehub::python {
namespace {

struct Request {
    LayerArguments layer;
    std::optional<std::string> systems;
    std::optional<std::string> threads;
    GivenObjects given;

    int thread_count() const {
        return threads ? static_cast<int>(count_of("--threads", *threads, {1, 4096})) : 0;
    }
};

/// A layer's options; those of compare and run besides.
std::vector<Option> options_of(Request& request) {
    std::vector<Option> options{{"--systems", &request.systems, "", ""},
                                {"--threads", &request.threads, "", ""}};
    add_layer_type_options(options, request.layer);
    add_layer_options(options, request.layer);
    options.push_back(baseline_option(request.layer.baseline));
    add_pass_option(options, request.layer);
    add_software_options(options, request.layer);
    return options;
}

void read(py::dict keywords, Request& request) {
    take_objects(keywords, request.given);
    fill(options_of(request), keywords);
}

std::vector<SystemSpec> systems_of(const Request& request, const UsualSystems& usual) {
    const LayerNouns& nouns = request.given.nouns;
    if (nouns.systems != nullptr) return given_systems(request.layer, *nouns.systems);
    return load_systems(request.layer, usual.names);
}

/// None named: all that can run this, and why the others cannot.
template <class Case>
UsualSystems names_of(const Request& request, const Case& layer) {
    if (request.given.nouns.systems != nullptr) return {};
    if (request.systems) return {listed(*request.systems), {}};
    return usual_systems(layer);
}

Json tp_document(const Request& request, std::string_view command) {
    const LayerNouns& nouns = request.given.nouns;
    if (request.systems && nouns.systems == nullptr) check_tp_systems(listed(*request.systems));
    const TpCase layer = load_tp(request.layer, command == "compare", nouns);
    const UsualSystems usual = names_of(request, layer);
    TpCompareOptions options;
    options.layer = layer.options;
    options.baseline = request.layer.baseline;
    options.threads = request.thread_count();
    auto parts = compare_tp_parts(layer.input(), layer.parts, systems_of(request, usual), options);
    for (Comparison& part : parts) part.left_out = usual.left_out;
    return document(command, tp_comparison_json(layer, parts));
}

Json moe_document(const Request& request, std::string_view command) {
    const LayerNouns& nouns = request.given.nouns;
    if (request.systems && nouns.systems == nullptr) check_systems(listed(*request.systems));
    const LayerCase layer = load_layer(request.layer, LayoutLayer::first, nouns);
    UsualSystems usual = names_of(request, layer);
    CompareOptions options;
    options.layer = layer.options;
    options.baseline = request.layer.baseline;
    options.threads = request.thread_count();
    Comparison comparison = compare_systems(layer.input(), systems_of(request, usual), options);
    comparison.left_out = std::move(usual.left_out);
    return document(command, comparison_json(layer, comparison));
}

/// `command` says whose document it is: compare's, or run's of one system.
py::object answer(const std::string& command, const py::dict& keywords) {
    Request request;
    read(keywords, request);
    Json json;
    {
        const py::gil_scoped_release unlocked;
        json = wants_tp(request.layer) ? tp_document(request, command)
                                       : moe_document(request, command);
    }
    return to_python(json);
}

/// One system, with all that a simulation gives.
SimulatedLayer simulate(const py::dict& keywords, bool timeline) {
    Request request;
    read(keywords, request);
    const py::gil_scoped_release unlocked;
    if (wants_tp(request.layer)) {
        TpCase layer = load_tp(request.layer, false, request.given.nouns);
        layer.options.timeline.record = timeline;
        const SystemSpec system = systems_of(request, names_of(request, layer)).front();
        return {system, simulate_tp(layer.input(), system, layer.options), layer.machine.gpus()};
    }
    LayerCase layer = load_layer(request.layer, LayoutLayer::first, request.given.nouns);
    layer.options.timeline.record = timeline;
    const SystemSpec system = systems_of(request, names_of(request, layer)).front();
    return {system, simulate_layer(layer.input(), system, layer.options), layer.machine.gpus()};
}

}  // namespace

void bind_layers(py::module_& module) {
    module.def("compare", &answer, "A command's document: compare or run.");
    module.def("simulate", &simulate, "One layer under one system.");
}

}  // namespace moehub::python
