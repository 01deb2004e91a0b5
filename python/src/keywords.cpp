// Python's keywords are the commands' options.
#include "base/nearest.hpp"
#include "base/quantity.hpp"
#include "bindings.hpp"

#include <moehub/error.hpp>
#include <moehub/presets.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace moehub::python {
namespace {

std::vector<std::string> texts_of(const py::handle& value) {
    if (py::isinstance<py::str>(value) || !py::isinstance<py::iterable>(value))
        return {py::str(value)};
    std::vector<std::string> texts;
    for (const py::handle& one : value) texts.push_back(py::str(one));
    return texts;
}

/// A list is what the command takes with commas between.
std::string text_of(const py::handle& value) {
    std::string text;
    for (const std::string& one : texts_of(value)) text += (text.empty() ? "" : ",") + one;
    return text;
}

bool flag_of(const Option& option, const py::handle& value) {
    if (py::isinstance<py::bool_>(value)) return value.cast<bool>();
    const std::string type = py::str(py::type::handle_of(value).attr("__name__"));
    if (type == "bool_" || type == "bool") return value.attr("__bool__")().cast<bool>();  // NumPy's
    throw InputError(fmt::format("{}: found {}, allowed: True, False", key_of(option),
                                 std::string(py::repr(value))));
}

void set(const Option& option, const py::handle& value) {
    if (auto* const* flag = std::get_if<bool*>(&option.target))
        **flag = flag_of(option, value);
    else if (auto* const* list = std::get_if<std::vector<std::string>*>(&option.target))
        **list = texts_of(value);
    else if (auto* const* maybe = std::get_if<std::optional<std::string>*>(&option.target))
        **maybe = text_of(value);
    else
        *std::get<std::string*>(option.target) = text_of(value);
}

/// The object behind a keyword, which is taken out; null where it is text or not there.
template <class Noun>
const Noun* taken(py::dict& keywords, const char* name, GivenObjects& given) {
    if (!keywords.contains(name) || !py::isinstance<Noun>(keywords[name])) return nullptr;
    given.kept.push_back(keywords.attr("pop")(name));
    return given.kept.back().cast<const Noun*>();
}

void take_systems(py::dict& keywords, GivenObjects& given) {
    if (!keywords.contains("systems")) return;
    const py::object value = keywords["systems"];
    if (py::isinstance<py::str>(value) || value.is_none()) return;
    const py::list systems = py::isinstance<Loaded<SystemSpec>>(value)
                                 ? py::list(py::make_tuple(value))
                                 : py::list(value);
    const bool objects = std::any_of(systems.begin(), systems.end(), [](const py::handle& one) {
        return py::isinstance<Loaded<SystemSpec>>(one);
    });
    if (!objects) return;
    for (const py::handle& one : systems)
        given.systems.push_back(py::isinstance<Loaded<SystemSpec>>(one)
                                    ? one.cast<const Loaded<SystemSpec>&>().value
                                    : load_system(py::str(one)));
    given.nouns.systems = &given.systems;
    keywords.attr("pop")("systems");
}

}  // namespace

void fill(const std::vector<Option>& options, const py::dict& keywords) {
    std::vector<std::string> given;
    for (const auto& [key, value] : keywords) {
        if (value.is_none()) continue;
        const std::string name = py::str(key);
        const auto option = std::find_if(options.begin(), options.end(),
                                         [&](const Option& one) { return key_of(one) == name; });
        if (option == options.end()) {
            std::vector<std::string> known;
            for (const Option& one : options) known.push_back(key_of(one));
            throw InputError(fmt::format("unknown keyword {}{}", moehub::quoted(name),
                                         did_you_mean(name, known)));
        }
        set(*option, value);
        given.push_back(name);
    }
    check_rules(options, given);
}

void take_objects(py::dict& keywords, GivenObjects& given) {
    if (const auto* machine = taken<SizedMachine>(keywords, "machine", given)) {
        given.nouns.machine = &machine->whole;
        const bool sized = keywords.contains("gpus") && !keywords["gpus"].is_none();
        if (machine->gpus && !sized) keywords["gpus"] = *machine->gpus;
    }
    given.nouns.model = taken<Loaded<Model>>(keywords, "model", given);
    given.nouns.routing = taken<NamedRouting>(keywords, "routing", given);
    given.nouns.layout = taken<Loaded<ExpertLayout>>(keywords, "layout", given);
    take_systems(keywords, given);
}

}  // namespace moehub::python
