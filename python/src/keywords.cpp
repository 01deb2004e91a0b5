// What Python's keywords say to options.
#include "bindings.hpp"

#include <moehub/error.hpp>

#include <algorithm>
#include <functional>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub::python {
namespace {

[[noreturn]] void refuse(const std::string& keyword, const py::handle& found, const char* allowed) {
    constexpr std::size_t kLongest = 200;
    std::string shown = py::repr(found);
    if (shown.size() > kLongest || shown.find('\n') != std::string::npos)
        shown = "a value of type " + std::string(py::str(py::type::handle_of(found)));
    throw InputError(fmt::format("{}: found {}, allowed: {}", keyword, shown, allowed));
}

/// Arrays say what they mean before they stand for routings and layouts.
void refuse_array(const Option& option, const py::handle& value) {
    if (!py::isinstance<py::array>(value) || value.cast<py::array>().ndim() == 0) return;
    const ValueKind kind = option.target.kind;
    const bool routing = kind == ValueKind::routing || kind == ValueKind::profile;
    if (!routing && kind != ValueKind::layout) return;
    throw InputError(fmt::format("{}: found an array, allowed: moehub.{}(array, experts=…)",
                                 keyword_of(option), routing ? "routing" : "layout"));
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

bool is_mapping(const py::handle& value) {
    return PyMapping_Check(value.ptr()) != 0 && py::hasattr(value, "keys");
}

bool is_text(const py::handle& value) {
    return py::isinstance<py::str>(value) || py::isinstance<py::bytes>(value) ||
           py::isinstance<py::bytearray>(value) || py::isinstance<py::memoryview>(value) ||
           py::hasattr(value, "__fspath__");
}

bool is_list(const py::handle& value) {
    return py::isinstance<py::iterable>(value) && !is_text(value) && !is_mapping(value);
}

/// One value of Python as a command line has it; nothing of what is no such value.
std::optional<std::string> plain_text_of(const py::handle& value) {
    if (py::isinstance<py::bool_>(value)) return value.cast<bool>() ? "true" : "false";
    if (py::isinstance<py::str>(value) || py::isinstance<py::int_>(value) ||
        py::isinstance<py::float_>(value))
        return py::str(value);
    if (!py::hasattr(value, "__fspath__")) return std::nullopt;
    const py::object path = value.attr("__fspath__")();
    if (!py::isinstance<py::str>(path)) return std::nullopt;
    return py::str(path);
}

/// What a scalar or an array of one value of NumPy holds; None of others.
py::object item_of(const py::handle& value) {
    if (!py::hasattr(value, "item")) return py::none();
    try {
        return value.attr("item")();
    } catch (py::error_already_set& error) {
        if (!error.matches(PyExc_Exception)) throw;
        return py::none();
    }
}

/// One value of Python or NumPy as a command line has it.
std::string text_of(const std::string& keyword, const py::handle& value) {
    if (const auto text = plain_text_of(value)) return *text;
    if (const auto text = plain_text_of(item_of(value))) return *text;
    refuse(keyword, value, "texts, numbers, paths, lists and dicts of them");
}

std::vector<std::string> texts_in(const std::string& keyword, const py::handle& list) {
    std::vector<std::string> texts;
    for (const py::handle& one : list) texts.push_back(text_of(keyword, one));
    return texts;
}

/// With commas between, or with semicolons between values that hold commas.
std::string separator_of(const std::vector<std::string>& texts) {
    const bool commas = std::any_of(texts.begin(), texts.end(), [](const std::string& text) {
        return text.find(',') != std::string::npos;
    });
    return commas ? ";" : ",";
}

/// Whether a list of one value ends with its separator, which tells that it is a list.
enum class EndMark { never, after_commas, always };

/// "5," is seed 5, "zipf:1,transition:0.5;" one routing of an axis.
EndMark end_mark_of(const Option& option) {
    const Target& target = option.target;
    if (target.commas || !target.type.ends_with("A,B")) return EndMark::never;
    return target.kind == ValueKind::settings ? EndMark::after_commas : EndMark::always;
}

/// The value as one text, also where it is a list.
std::string joined(const std::string& keyword, const py::handle& value, EndMark mark) {
    if (!is_list(value)) return text_of(keyword, value);
    const std::vector<std::string> texts = texts_in(keyword, value);
    const std::string separator = separator_of(texts);
    const bool marked = texts.size() == 1 && (mark == EndMark::always ||
                                              (mark == EndMark::after_commas && separator == ";"));
    return fmt::format("{}{}", fmt::join(texts, separator), marked ? separator : "");
}

/// {"link": {"latency": "1 us"}} as link.latency=1 us.
void add_settings(const std::string& keyword, const std::string& prefix, const py::handle& settings,
                  EndMark mark, std::vector<std::string>& texts) {
    constexpr std::ptrdiff_t kDeepest = 16;  // no key has as many parts
    if (std::count(prefix.begin(), prefix.end(), '.') >= kDeepest)
        throw InputError(fmt::format("{}: found dicts in dicts at {}…, allowed: up to {} deep",
                                     keyword, prefix, kDeepest));
    const py::dict members(py::reinterpret_borrow<py::object>(settings));
    for (const auto& [name, value] : members) {
        const std::string key = prefix + text_of(keyword, name);
        if (is_mapping(value))
            add_settings(keyword, key + ".", value, mark, texts);
        else
            texts.push_back(key + "=" + joined(key, value, mark));
    }
}

std::vector<std::string> texts_of(const Option& option, const py::handle& value) {
    const std::string keyword = keyword_of(option);
    std::vector<std::string> texts;
    if (is_mapping(value))
        add_settings(keyword, "", value, end_mark_of(option), texts);
    else if (!is_list(value))
        texts = {text_of(keyword, value)};
    else if (option.target.list)
        return texts_in(keyword, value);
    else
        return {joined(keyword, value, end_mark_of(option))};
    if (option.target.list) return texts;
    return {fmt::format("{}", fmt::join(texts, ","))};
}

SaidOption flag_said_as(const Option& option, const py::handle& value) {
    const std::string type = py::str(py::type::handle_of(value).attr("__name__"));
    if (!type.starts_with("bool"))
        refuse(keyword_of(option), value, "True, False");  // NumPy's, too
    return {key_of(option), {value.attr("__bool__")().cast<bool>() ? "true" : "false"}};
}

/// Objects stay what they are, and names beside them names.
void say(const Option& option, const py::handle& value, Said& said) {
    if (option.target.kind == ValueKind::flag) return said.push_back(flag_said_as(option, value));
    if (auto noun = held_noun(value))
        return said.push_back({key_of(option), {}, {std::move(*noun)}});
    refuse_array(option, value);
    if (!is_list(value)) return said.push_back({key_of(option), texts_of(option, value)});
    const py::list all(py::reinterpret_borrow<py::object>(value));
    for (const py::handle& one : all) refuse_array(option, one);
    if (std::none_of(all.begin(), all.end(),
                     [](const py::handle& one) { return held_noun(one).has_value(); }))
        return said.push_back({key_of(option), texts_of(option, all)});
    for (const py::handle& one : all) {
        if (auto noun = held_noun(one))
            said.push_back({key_of(option), {}, {std::move(*noun)}});
        else
            said.push_back({key_of(option), {text_of(keyword_of(option), one)}});
    }
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

std::vector<std::string> settings_in(const py::object& set, const py::dict& changes) {
    std::vector<std::string> texts;
    if (is_mapping(set))
        add_settings("set", "", set, EndMark::never, texts);
    else if (is_list(set))
        texts = texts_in("set", set);
    else
        texts = {text_of("set", set)};
    add_settings("set", "", changes, EndMark::never, texts);
    return texts;
}

std::int64_t count_in(const std::string& keyword, const py::handle& value, Range allowed) {
    return count_of(keyword, text_of(keyword, value), allowed);
}

std::string name_in(const std::string& keyword, const py::handle& value) {
    const bool name = py::isinstance<py::str>(value) || py::hasattr(value, "__fspath__");
    const auto text = name ? plain_text_of(value) : std::nullopt;
    if (!text) refuse(keyword, value, "a text or a path");
    return *text;
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
            say(option, value, said);
    }
    return said;
}

}  // namespace moehub::python
