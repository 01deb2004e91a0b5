/// The parts of Python's module _moehub, and what they share. Everything that runs long releases
/// the interpreter's lock.
#pragma once
#include "base/json.hpp"
#include "request/nouns.hpp"
#include "request/option.hpp"

#include <moehub/layer.hpp>

#include <optional>
#include <string>
#include <vector>

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

namespace moehub::python {

namespace py = pybind11;

/// A machine as loaded, and how many of its GPUs are meant.
struct SizedMachine {
    Loaded<Machine> whole;
    std::optional<int> gpus;

    Machine value() const;
};

void bind_errors(py::module_& module);
void bind_nouns(py::module_& module);
void bind_routing(py::module_& module);
void bind_layouts(py::module_& module);
void bind_layers(py::module_& module);
void bind_results(py::module_& module);
void bind_models(py::module_& module);
void bind_placing(py::module_& module);
void bind_planning(py::module_& module);
void bind_kernels(py::module_& module);

/// Dicts, lists and plain values.
py::object to_python(const Json& json);

/// An array that takes the values over without a copy.
template <class Value>
py::array_t<Value> to_array(std::vector<Value> values, std::vector<py::ssize_t> shape) {
    auto* const owned = new std::vector<Value>(std::move(values));
    const py::capsule owner(owned, [](void* all) { delete static_cast<std::vector<Value>*>(all); });
    return py::array_t<Value>(std::move(shape), owned->data(), owner);
}
template <class Value>
py::array_t<Value> to_array(std::vector<Value> values) {
    const auto size = static_cast<py::ssize_t>(values.size());
    return to_array(std::move(values), {size});
}

/// Sets the options' targets from keywords: `page_rows` is --page-rows, None is not typed. Throws
/// InputError for a keyword that no option has, a flag that is neither True nor False, and keywords
/// that cannot stand together.
void fill(const std::vector<Option>& options, const py::dict& keywords);

/// What a call has of Python's objects; texts stay in the keywords, as names.
struct GivenObjects {
    LayerNouns nouns;  ///< points into what is kept
    std::vector<py::object> kept;
    std::vector<SystemSpec> systems;  ///< what nouns.systems points to, where any is an object
};
/// Takes `machine`, `model`, `routing`, `layout` and `systems` out of the keywords where they are
/// objects.
void take_objects(py::dict& keywords, GivenObjects& given);

}  // namespace moehub::python
