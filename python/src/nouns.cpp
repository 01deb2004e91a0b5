// Machines, models, GPUs and systems: loaded by name, printed, their values by key.
#include "answers/question.hpp"
#include "bindings.hpp"

#include <moehub/presets.hpp>
#include <moehub/tp.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace moehub::python {
namespace {

template <class Noun>
py::object dict_of(const Noun& noun) {
    return to_python(Json::parse(to_json(noun)));
}

/// What all kinds have; `value` gives the noun of the bound class.
template <class Bound, class Value>
py::class_<Bound, std::shared_ptr<Bound>> bind_noun(py::module_& module, const char* name,
                                                    const char* doc, Value value) {
    py::class_<Bound, std::shared_ptr<Bound>> bound(module, name, doc);
    bound.def(
        "to_dict", [value](const Bound& self) { return dict_of(value(self)); },
        "All values by key; times in picoseconds, sizes in bytes, rates per second.");
    bound.def(
        "to_toml", [value](const Bound& self) { return to_toml(value(self)); },
        "As a TOML file, with units and a comment per key; reads back equal.");
    bound.def(
        "__getattr__",
        [value](const Bound& self, const std::string& key) {
            const auto values = dict_of(value(self)).template cast<py::dict>();
            if (!values.contains(key)) throw py::attribute_error("there is no key '" + key + "'");
            return py::object(values[key.c_str()]);
        },
        "The value of a key, as to_dict() has it; of a table an object with its keys.");
    return bound;
}

template <class Noun>
using Load = Noun (*)(const std::string&, const Overrides&);
template <class Noun>
using Parse = Noun (*)(std::string_view, const std::string&);

/// Name, settings and TOML: other processes need not have the file.
template <class Noun>
py::tuple state_of(const Loaded<Noun>& noun) {
    return py::make_tuple(noun.name, noun.settings, to_toml(noun.value));
}
template <class Noun>
std::shared_ptr<Loaded<Noun>> from_state(const py::tuple& state, Parse<Noun> parse) {
    const auto name = state[0].cast<std::string>();
    return std::make_shared<Loaded<Noun>>(
        Loaded<Noun>{parse(state[2].cast<std::string>(), name), name, state[1].cast<Overrides>()});
}

template <class Noun>
void bind_loaded(py::module_& module, const char* name, const char* doc, Load<Noun> load,
                 Parse<Noun> parse) {
    using One = Loaded<Noun>;
    auto bound = bind_noun<One>(module, name, doc, [](const One& self) { return self.value; });
    bound.def_readonly("source", &One::name, "Preset or file, as asked for.");
    bound.def_readonly("settings", &One::settings, "KEY=VALUE that changed it.");
    bound.def("__repr__",
              [name](const One& self) { return fmt::format("<moehub.{} {}>", name, self.name); });
    bound.def(py::pickle(&state_of<Noun>, [parse](const py::tuple& state) {
        return from_state<Noun>(state, parse);
    }));
    bound.def_static(
        "load",
        [load](const py::object& wanted, const py::object& set, const py::dict& changes) {
            const std::string source = name_in("name", wanted);
            const Overrides settings = settings_in(set, changes);
            return std::make_shared<One>(One{load(source, settings), source, settings});
        },
        "By preset or file, with settings as set= and further keywords say them.");
}

SizedMachine sized(Held<Machine> whole, const py::object& gpus) {
    SizedMachine machine{std::move(whole), {}};
    if (!gpus.is_none()) machine.gpus = static_cast<int>(count_in("gpus", gpus, at_least(1)));
    machine.value();  // refuses sizes that cannot be
    return machine;
}

void bind_machine(py::module_& module) {
    auto machine = bind_noun<SizedMachine>(
        module, "Machine", "GPUs, links, switches, nodes and NICs; made by moehub.machine().",
        [](const SizedMachine& self) { return self.value(); });
    machine.def_property_readonly(
        "source", [](const SizedMachine& self) { return self.whole->name; },
        "Preset or file, as asked for.");
    machine.def_property_readonly(
        "settings", [](const SizedMachine& self) { return self.whole->settings; },
        "KEY=VALUE that changed it.");
    machine.def_property_readonly(
        "gpus", [](const SizedMachine& self) { return self.value().gpus(); }, "How many GPUs.");
    machine.def("__repr__", [](const SizedMachine& self) {
        return fmt::format("<moehub.Machine {}, {} GPUs>", self.whole->name, self.value().gpus());
    });
    machine.def(py::pickle(
        [](const SizedMachine& self) {
            return py::make_tuple(state_of(*self.whole), py::cast(self.gpus));
        },
        [](const py::tuple& state) {
            return sized(from_state<Machine>(state[0], parse<Machine>), state[1]);
        }));
    machine.def_static(
        "load",
        [](const py::object& source, const py::object& set, const py::dict& changes,
           const py::object& gpus) {
            const std::string name = name_in("name", source);
            const Overrides settings = settings_in(set, changes);
            return sized(std::make_shared<Loaded<Machine>>(
                             Loaded<Machine>{load_machine(name, settings), name, settings}),
                         gpus);
        },
        "By preset or file, with settings as Model.load() has them, of so many GPUs.");
}

/// Presets of a kind that `moehub list` knows.
std::vector<std::string> presets_of(const py::object& kind) {
    const std::string name = name_in("kind", kind);
    for (const Question& question : questions()) {
        if (question.name != "list") continue;
        const Asked asked = question.ask();
        const std::vector<std::string>& known = find_option(asked.options, "kind")->target.choices;
        if (std::find(known.begin(), known.end(), name) == known.end())
            refuse_name("kind", name, known);
    }
    return preset_names(name);
}

}  // namespace

Machine SizedMachine::value() const {
    return gpus ? with_gpus(whole->value, *gpus) : whole->value;
}

void bind_nouns(py::module_& module) {
    bind_machine(module);
    bind_loaded<Model>(module, "Model", "Shape of a transformer; made by moehub.model().",
                       load_model, parse<Model>);
    bind_loaded<Gpu>(module, "Gpu", "A card and its constants; made by moehub.gpu().", load_gpu,
                     parse<Gpu>);
    bind_loaded<SystemSpec>(module, "System", "How a layer is executed; made by moehub.system().",
                            load_system, parse<SystemSpec>);
    module.def("presets", &presets_of, "Names of a kind's presets.");
    module.def(
        "systems",
        [](bool tp) {
            Json all = Json::array();
            for (const SystemInfo& one : tp ? all_tp_systems() : all_systems())
                all.push_back({{"name", one.name},
                               {"title", one.title},
                               {"program", one.program},
                               {"lines", one.lines}});
            return to_python(all);
        },
        "All systems of MoE layers, or of tensor-parallel sub-layers.");
}

}  // namespace moehub::python
