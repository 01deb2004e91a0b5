#include "bindings.hpp"

namespace moehub::python {
namespace {

struct Maker {
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
        for (std::size_t i = 0; i < list.size(); ++i) made[i] = to_python(list[i]);
        return made;
    }
    py::object operator()(const std::vector<Json::Member>& members) const {
        py::dict made;
        for (const auto& [name, value] : members) made[(*this)(name)] = to_python(value);
        return made;
    }
};

}  // namespace

py::object to_python(const Json& json) {
    return json.visit(Maker{});
}

}  // namespace moehub::python
