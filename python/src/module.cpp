// Python's module moehub._moehub; python/moehub/__init__.py is what users see of it.
#include "base/utf8.hpp"
#include "bindings.hpp"

#include <moehub/error.hpp>
#include <moehub/version.hpp>

#include <new>

#include <fmt/format.h>

namespace moehub::python {

/// InputError is Python's moehub.InputError, a ValueError; what else throws is a defect.
void bind_errors(py::module_& module) {
    static py::exception<InputError> input_error(module, "InputError", PyExc_ValueError);
    input_error.attr("__module__") = "moehub";
    input_error.attr("__doc__") =
        "Bad input: one line that says what was found and what is allowed, as the command prints "
        "it.";
    py::register_exception_translator([](std::exception_ptr thrown) {
        try {
            if (thrown) std::rethrow_exception(thrown);
        } catch (const InputError& error) {
            PyErr_SetString(input_error.ptr(), printable(error.what()).c_str());
        } catch (const py::error_already_set&) {
            throw;
        } catch (const py::builtin_exception&) {
            throw;
        } catch (const std::bad_alloc&) {
            throw;
        } catch (const std::exception& error) {
            PyErr_SetString(PyExc_RuntimeError,
                            fmt::format("internal error: {}", error.what()).c_str());
        }
    });
}

}  // namespace moehub::python

PYBIND11_MODULE(_moehub, module) {
    using namespace moehub::python;
    module.doc() = "What moehub's Python package calls; use that.";
    module.attr("__version__") = std::string(moehub::version());
    bind_errors(module);
    bind_nouns(module);
    bind_routing(module);
    bind_layouts(module);
    bind_layers(module);
    bind_results(module);
    bind_questions(module);
}
