// What a question was answered with: values as a moehub.Result, and its other forms.
#include "base/files.hpp"
#include "bindings.hpp"
#include "report/answer_forms.hpp"

#include <moehub/error.hpp>

#include <fmt/format.h>

namespace moehub::python {
namespace {

/// An answer behind a Result. A copy from another process has texts alone.
struct Forms {
    std::shared_ptr<const Answer> answer;
    py::object call;  ///< that was answered, for pages
    std::string text, notebook, csv;
};

std::string call_of(const Forms& forms) {
    std::string said;
    const auto call = forms.call.cast<py::tuple>();
    for (const auto& [name, value] : call[1].cast<py::dict>())
        if (!value.is_none())
            said += fmt::format("{}{}={}", said.empty() ? "" : ", ", std::string(py::str(name)),
                                std::string(py::repr(value)));
    return fmt::format("moehub.{}({})", std::string(py::str(call[0])), said);
}

const Answer& answer_in(const Forms& forms, const char* form) {
    if (forms.answer != nullptr) return *forms.answer;
    throw InputError(fmt::format(
        "{}: found a copy from another process, allowed: the result that a call gave", form));
}

std::string page_of(const Forms& forms) {
    if (chart_library().empty())
        throw InputError("to_html: this build has no charts, allowed: one configured with npm");
    const Answer& answer = answer_in(forms, "to_html");
    return page_html(answer, call_of(forms));
}

std::string trace_of(const Forms& forms) {
    const Answer& answer = answer_in(forms, "to_trace");
    if (answer.trace.empty())
        throw InputError(
            "to_trace: found no time line, allowed: of compare() and run() with "
            "timeline=True");
    return answer.trace;
}

std::string text_in(const Forms& forms) {
    return forms.answer ? text_of(*forms.answer, {}) : forms.text;
}
std::string notebook_in(const Forms& forms) {
    return forms.answer ? notebook_html(*forms.answer) : forms.notebook;
}
std::string csv_in(const Forms& forms) {
    return forms.answer ? csv_text(*forms.answer) : forms.csv;
}

/// A form as text, which goes to a file, too, where one is named.
template <std::string (*Form)(const Forms&)>
std::string form_of(const Forms& forms, const std::optional<std::filesystem::path>& path) {
    std::string text = Form(forms);
    if (path) write_file(path->string(), text);
    return text;
}

py::list simulated_in(const Forms& forms, const py::list& rows) {
    py::list layers;
    if (forms.answer == nullptr) return layers;
    for (const auto& layer : forms.answer->simulated)
        layers.append(SimulatedLayer{layer, rows[layers.size()]});
    return layers;
}

py::object layout_in(const Answer& answer) {
    if (!answer.layout) return py::none();
    return py::cast(std::make_shared<Loaded<ExpertLayout>>(
        Loaded<ExpertLayout>{*answer.layout, answer.question}));
}

struct Maker {
    const py::object& record;  ///< the type of objects

    py::object operator()(std::nullptr_t) const { return py::none(); }
    py::object operator()(bool value) const { return py::bool_(value); }
    py::object operator()(double value) const { return py::float_(value); }
    py::object operator()(std::int64_t value) const { return py::int_(value); }
    py::object operator()(std::uint64_t value) const { return py::int_(value); }
    py::object operator()(const std::string& value) const {
        PyObject* const text =
            PyUnicode_DecodeUTF8(value.data(), static_cast<py::ssize_t>(value.size()), "replace");
        if (text == nullptr) throw py::error_already_set();
        return py::reinterpret_steal<py::object>(text);
    }
    py::object operator()(const std::vector<Json>& list) const {
        py::list made(list.size());
        for (std::size_t i = 0; i < list.size(); ++i) made[i] = list[i].visit(*this);
        return made;
    }
    py::object operator()(const std::vector<Json::Member>& members) const {
        py::object made = record();
        for (const auto& [name, value] : members)
            if (PyDict_SetItem(made.ptr(), (*this)(name).ptr(), value.visit(*this).ptr()) != 0)
                throw py::error_already_set();
        return made;
    }
};

/// A class of moehub's Python files.
py::object class_named(const char* name) {
    return py::module_::import("moehub._results").attr(name);
}

}  // namespace

py::object to_python(const Json& json) {
    return json.visit(Maker{class_named("Record")});
}

py::object to_result(Answer answer, const Question& question, const py::object& call) {
    answer.question = question.name;
    py::object result = class_named("Result")(to_python(document_of(answer)));
    const py::object layout = layout_in(answer);
    if (!layout.is_none()) py::setattr(result, "layout", layout);
    py::setattr(
        result, "_forms",
        py::cast(Forms{std::make_shared<const Answer>(std::move(answer)), call, {}, {}, {}}));
    return result;
}

void bind_results(py::module_& module) {
    const auto path = py::arg("path") = py::none();
    py::class_<Forms>(module, "Forms", "An answer as text, CSV, page and trace.")
        .def("text", &form_of<text_in>, path, "For people.")
        .def("notebook", &form_of<notebook_in>, path, "Tables as HTML.")
        .def("csv", &form_of<csv_in>, path, "The main table.")
        .def("html", &form_of<page_of>, path, "A page with charts.")
        .def("trace", &form_of<trace_of>, path, "For the Perfetto UI.")
        .def("simulated", &simulated_in, "Simulated layers, in the order of these rows.")
        .def("__copy__", [](const Forms& self) { return self; })
        .def("__deepcopy__", [](const Forms& self, const py::object&) { return self; })
        .def(py::pickle(
            [](const Forms& self) {
                return py::make_tuple(text_in(self), notebook_in(self), csv_in(self));
            },
            [](const py::tuple& texts) {
                return Forms{nullptr, py::none(), texts[0].cast<std::string>(),
                             texts[1].cast<std::string>(), texts[2].cast<std::string>()};
            }));
}

}  // namespace moehub::python
