// Machines, models, GPUs and systems: loaded by name, printed, their values by key.
#include "bindings.hpp"
#include "model/records.hpp"

#include <moehub/layer.hpp>
#include <moehub/tp.hpp>

namespace moehub::python {
namespace {

template <class Noun>
Fields shown(Noun& noun) {
    return fields_of(noun);
}
Fields shown(Machine& machine) {
    return without_absent_kernels(fields_of(machine), "gpu.");
}
Fields shown(Gpu& gpu) {
    return without_absent_kernels(fields_of(gpu), "");
}

template <class Noun>
py::object dict_of(Noun noun) {
    return to_python(json_of(shown(noun)));
}

/// Tables inside as attributes of their own.
py::object as_attribute(const py::object& value) {
    if (!py::isinstance<py::dict>(value)) return value;
    const py::dict inner;
    for (const auto& [key, one] : value.cast<py::dict>())
        inner[key] = as_attribute(py::reinterpret_borrow<py::object>(one));
    return py::module_::import("types").attr("SimpleNamespace")(**inner);
}

template <class Noun>
py::object attribute_of(const Noun& noun, const std::string& key) {
    const auto values = dict_of(noun).template cast<py::dict>();
    if (!values.contains(key)) throw py::attribute_error("there is no key '" + key + "'");
    return as_attribute(values[key.c_str()]);
}

/// What all kinds have; `value` gives the noun of the bound class.
template <class Bound, class Value>
py::class_<Bound> bind_noun(py::module_& module, const char* name, const char* doc, Value value) {
    py::class_<Bound> bound(module, name, doc);
    bound.def(
        "to_dict", [value](const Bound& self) { return dict_of(value(self)); },
        "All values by key; times in picoseconds, sizes in bytes, rates per second.");
    bound.def(
        "to_toml", [value](const Bound& self) { return to_toml(value(self)); },
        "As a TOML file, with units and a comment per key; reads back equal.");
    bound.def(
        "__getattr__",
        [value](const Bound& self, const std::string& key) {
            return attribute_of(value(self), key);
        },
        "The value of a key, as to_dict() has it; of a table an object with its keys.");
    return bound;
}

template <class Noun>
py::class_<Loaded<Noun>> bind_loaded(py::module_& module, const char* name, const char* doc) {
    auto bound = bind_noun<Loaded<Noun>>(module, name, doc,
                                         [](const Loaded<Noun>& self) { return self.value; });
    bound.def_readonly("source", &Loaded<Noun>::name, "Preset or file, as asked for.");
    bound.def_readonly("settings", &Loaded<Noun>::settings, "KEY=VALUE that changed it.");
    bound.def("__repr__", [name](const Loaded<Noun>& self) {
        return std::string("<moehub.") + name + " " + self.name + ">";
    });
    return bound;
}

void bind_machine(py::module_& module) {
    auto machine = bind_noun<SizedMachine>(
        module, "Machine", "GPUs, links, switches, nodes and NICs; made by moehub.machine().",
        [](const SizedMachine& self) { return self.value(); });
    machine.def_property_readonly(
        "source", [](const SizedMachine& self) { return self.whole.name; },
        "Preset or file, as asked for.");
    machine.def_property_readonly(
        "settings", [](const SizedMachine& self) { return self.whole.settings; },
        "KEY=VALUE that changed it.");
    machine.def_property_readonly(
        "gpus", [](const SizedMachine& self) { return self.value().gpus(); }, "How many GPUs.");
    machine.def("__repr__", [](const SizedMachine& self) {
        return "<moehub.Machine " + self.whole.name + ", " + std::to_string(self.value().gpus()) +
               " GPUs>";
    });
    module.def(
        "load_machine",
        [](const std::string& name, const Overrides& settings, std::optional<int> gpus) {
            SizedMachine made{{load_machine(name, settings), name, settings}, gpus};
            made.value();  // refuses sizes that cannot be
            return made;
        },
        "A machine by preset or file, with settings KEY=VALUE and of so many GPUs.");
}

py::list systems_of(const std::vector<SystemInfo>& systems) {
    py::list made;
    for (const SystemInfo& one : systems) {
        py::dict row;
        row["name"] = one.name;
        row["title"] = one.title;
        row["program"] = one.program;
        row["lines"] = one.lines;
        made.append(row);
    }
    return made;
}

}  // namespace

Machine SizedMachine::value() const {
    return gpus ? with_gpus(whole.value, *gpus) : whole.value;
}

void bind_nouns(py::module_& module) {
    bind_machine(module);
    bind_loaded<Model>(module, "Model", "Shape of a transformer; made by moehub.model().");
    bind_loaded<Gpu>(module, "Gpu", "A card and its constants; made by moehub.gpu().");
    bind_loaded<SystemSpec>(module, "System", "How a layer is executed; made by moehub.system().");
    module.def(
        "load_model",
        [](const std::string& name, const Overrides& settings) {
            return Loaded<Model>{load_model(name, settings), name, settings};
        },
        "A model by preset or file, with settings KEY=VALUE.");
    module.def(
        "load_gpu",
        [](const std::string& name, const Overrides& settings) {
            return Loaded<Gpu>{load_gpu(name, settings), name, settings};
        },
        "A GPU by preset or file, with settings KEY=VALUE.");
    module.def(
        "load_system",
        [](const std::string& name, const Overrides& settings) {
            return Loaded<SystemSpec>{load_system(name, settings), name, settings};
        },
        "A system by preset or file, with settings KEY=VALUE.");
    module.def(
        "presets", [](const std::string& kind) { return preset_names(kind); },
        "Names of a kind's presets.");
    module.def(
        "systems", [](bool tp) { return systems_of(tp ? all_tp_systems() : all_systems()); },
        "All systems of MoE layers, or of tensor-parallel sub-layers.");
}

}  // namespace moehub::python
