/// The parts of Python's module _moehub, and what they share. Everything that runs long releases
/// the interpreter's lock.
#pragma once
#include "answers/question.hpp"
#include "base/json.hpp"

#include <moehub/layer.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

namespace moehub::python {

namespace py = pybind11;

/// A machine as loaded, and how many of its GPUs are meant.
struct SizedMachine {
    Held<Machine> whole;
    std::optional<int> gpus;

    Machine value() const;
};

/// What a simulated layer gives, and its row of the answer's results.
struct SimulatedLayer {
    std::shared_ptr<const LayerResult> result;
    py::object row;
};

void bind_errors(py::module_& module);
void bind_nouns(py::module_& module);
void bind_routing(py::module_& module);
void bind_layouts(py::module_& module);
void bind_layers(py::module_& module);
void bind_results(py::module_& module);
void bind_questions(py::module_& module);

/// Dicts whose members are attributes, too, lists and plain values.
py::object to_python(const Json& json);

/// What a question was answered with, as moehub.Result; `call` says how it was asked.
py::object to_result(Answer answer, const Question& question, const py::object& call);

/// What Python's keywords say: `page_rows` is --page-rows, None is nothing. Throws InputError for
/// values that no text stands for.
Said said_in(const Options& options, const py::dict& keywords);
/// What set= and further keywords of a function that loads a noun say, as KEY=VALUE.
std::vector<std::string> settings_in(const py::object& set, const py::dict& changes);
/// A whole number, and a name or path. Throw InputError for values of other types.
std::int64_t count_in(const std::string& keyword, const py::handle& value, Range allowed);
std::string name_in(const std::string& keyword, const py::handle& value);
/// "page_rows", "kernel": the keyword of an option.
std::string keyword_of(const Option& option);

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

}  // namespace moehub::python
