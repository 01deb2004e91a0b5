// What Python's keywords say to options.
#include "bindings.hpp"

#include <moehub/error.hpp>

#include <algorithm>
#include <functional>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub::python {
namespace {

[[noreturn]] void refuse(const Option& option, const py::handle& found, const char* allowed) {
    throw InputError(fmt::format("{}: found {}, allowed: {}", keyword_of(option),
                                 std::string(py::repr(found)), allowed));
}

template <class Noun>
std::optional<HeldNoun> held(const py::handle& value) {
    if (!py::isinstance<Loaded<Noun>>(value)) return std::nullopt;
    return Held<Noun>(value.cast<std::shared_ptr<Loaded<Noun>>>());
}

/// The noun behind an object; machines are looked at apart, for their size.
std::optional<HeldNoun> held_noun(const py::handle& value) {
    for (const auto take :
         {held<Model>, held<SystemSpec>, held<NamedRouting>, held<Gpu>, held<ExpertLayout>})
        if (auto noun = take(value)) return noun;
    return std::nullopt;
}

/// A name beside objects is loaded, so that a comparison keeps its order.
std::optional<HeldNoun> loaded(const Option& option, const std::string& name) {
    if (option.target.kind == ValueKind::system)
        return std::make_shared<Loaded<SystemSpec>>(Loaded<SystemSpec>{load_system(name), name});
    if (option.target.kind == ValueKind::model)
        return std::make_shared<Loaded<Model>>(Loaded<Model>{load_model(name), name});
    return std::nullopt;
}

bool is_list(const py::handle& value) {
    return py::isinstance<py::iterable>(value) && !py::isinstance<py::str>(value) &&
           !py::isinstance<py::bytes>(value) && !py::hasattr(value, "__fspath__");
}

/// One value as a command line has it.
std::string text_of(const Option& option, const py::handle& value) {
    if (py::isinstance<py::bool_>(value)) return value.cast<bool>() ? "true" : "false";
    if (py::isinstance<py::str>(value) || py::isinstance<py::int_>(value) ||
        py::isinstance<py::float_>(value))
        return py::str(value);
    if (py::hasattr(value, "__fspath__")) return py::str(value.attr("__fspath__")());
    if (py::hasattr(value, "item")) return text_of(option, value.attr("item")());  // NumPy's
    refuse(option, value, "texts, numbers, paths, lists and dicts of them");
}

/// Of a list one text: with commas between, of values that hold commas with semicolons.
std::string joined(const Option& option, const py::handle& value) {
    if (!is_list(value)) return text_of(option, value);
    std::vector<std::string> texts;
    for (const py::handle& one : value) texts.push_back(text_of(option, one));
    const bool commas = std::any_of(texts.begin(), texts.end(), [](const std::string& text) {
        return text.find(',') != std::string::npos;
    });
    return fmt::format("{}", fmt::join(texts, commas ? ";" : ","));
}

/// {"link": {"latency": "1 us"}} as link.latency=1 us.
void add_settings(const Option& option, const std::string& prefix, const py::dict& settings,
                  std::vector<std::string>& texts) {
    for (const auto& [name, value] : settings) {
        const std::string key = prefix + text_of(option, name);
        if (py::isinstance<py::dict>(value))
            add_settings(option, key + ".", value.cast<py::dict>(), texts);
        else
            texts.push_back(key + "=" + joined(option, value));
    }
}

std::vector<std::string> texts_of(const Option& option, const py::handle& value) {
    std::vector<std::string> texts;
    if (py::isinstance<py::dict>(value))
        add_settings(option, "", value.cast<py::dict>(), texts);
    else if (is_list(value))
        for (const py::handle& one : value) texts.push_back(text_of(option, one));
    else
        texts = {text_of(option, value)};
    if (option.target.list) return texts;
    return {fmt::format("{}", fmt::join(texts, ","))};
}

SaidOption flag_said_as(const Option& option, const py::handle& value) {
    const std::string type = py::str(py::type::handle_of(value).attr("__name__"));
    if (!type.starts_with("bool")) refuse(option, value, "True, False");  // NumPy's, too
    return {key_of(option), {value.attr("__bool__")().cast<bool>() ? "true" : "false"}};
}

/// Objects stay what they are.
SaidOption said_as(const Option& option, const py::handle& value) {
    if (option.target.kind == ValueKind::flag) return flag_said_as(option, value);
    if (auto noun = held_noun(value)) return {key_of(option), {}, {std::move(*noun)}};
    if (!is_list(value) || py::isinstance<py::dict>(value))
        return {key_of(option), texts_of(option, value)};
    const py::list all(py::reinterpret_borrow<py::object>(value));
    if (std::none_of(all.begin(), all.end(),
                     [](const py::handle& one) { return held_noun(one).has_value(); }))
        return {key_of(option), texts_of(option, all)};
    SaidOption said{key_of(option), {}};
    for (const py::handle& one : all) {
        auto noun = held_noun(one);
        if (!noun) noun = loaded(option, text_of(option, one));
        if (noun)
            said.given.push_back(std::move(*noun));
        else
            said.texts.push_back(text_of(option, one));
    }
    return said;
}

/// Its size is the call's where that does not say another.
void say_machine(const Options& options, const Option& option, const SizedMachine& machine,
                 const py::dict& keywords, Said& said) {
    const bool sizes = find_option(options, "gpus") != nullptr;
    said.push_back({key_of(option), {}, {machine.whole}});
    if (!machine.gpus) return;
    if (!sizes)
        said.back().given = {std::make_shared<Loaded<Machine>>(
            Loaded<Machine>{machine.value(), machine.whole->name, machine.whole->settings})};
    else if (!keywords.contains("gpus") || keywords["gpus"].is_none())
        said.push_back({"gpus", {std::to_string(*machine.gpus)}});
}

}  // namespace

std::string keyword_of(const Option& option) {
    std::string key = key_of(option);
    for (char& letter : key)
        if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
    if (key == "pass" || key == "from" || key == "in") key += '_';  // words of Python
    return key;
}

Said said_in(const Options& options, const py::dict& keywords) {
    Said said;
    for (const Option& option : options) {
        const std::string keyword = keyword_of(option);
        PyObject* const found = PyDict_GetItemString(keywords.ptr(), keyword.c_str());
        if (found == nullptr || found == Py_None) continue;
        const py::handle value(found);
        if (py::isinstance<SizedMachine>(value))
            say_machine(options, option, value.cast<const SizedMachine&>(), keywords, said);
        else
            said.push_back(said_as(option, value));
    }
    return said;
}

}  // namespace moehub::python
