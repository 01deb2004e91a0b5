// Python's module moehub._moehub; python/moehub/__init__.py is what users see of it.
#include "bindings.hpp"

#include <moehub/version.hpp>

PYBIND11_MODULE(_moehub, module) {
    using namespace moehub::python;
    module.doc() = "What moehub's Python package calls; use that.";
    module.attr("__version__") = std::string(moehub::version());
    bind_errors(module);
    bind_nouns(module);
    bind_routing(module);
    bind_layouts(module);
    bind_results(module);
    bind_layers(module);
    bind_models(module);
    bind_placing(module);
    bind_planning(module);
    bind_kernels(module);
}
