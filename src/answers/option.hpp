/// What a question may be told, as rows of data: a name, a sentence for help, and the typed field
/// that a value goes to. Command lines, Python's keywords, keys of studies, help, completion and
/// the manual page follow from the rows. Text is parsed here, at the door, and nowhere behind it.
#pragma once
#include "answers/nouns.hpp"
#include "base/nearest.hpp"
#include "base/quantity.hpp"

#include <moehub/error.hpp>
#include <moehub/units.hpp>

#include <concepts>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <fmt/format.h>

namespace moehub {

/// Throws InputError with these words: what was found, what is allowed.
template <class... Values>
[[noreturn]] void bad_input(fmt::format_string<Values...> words, Values&&... values) {
    throw InputError(fmt::format(words, std::forward<Values>(values)...));
}

/// What a value is: its name in help, its type in Python and what completes it follow.
enum class ValueKind {
    flag,
    count,
    number,
    size,
    time,
    choice,
    text,
    file,
    settings,
    machine,
    model,
    gpu,
    system,
    engine,
    trainer,
    shapes,
    routing,
    layout,
    profile,
};

struct KindWords {
    std::string_view type;     ///< what help calls a value
    std::string_view presets;  ///< kind of preset that a name may be; empty: none
    bool files = false;        ///< files stand for values, too
    std::string_view python;   ///< type of a keyword that takes one value
};
const KindWords& words_of(ValueKind kind);

/// An object that a caller has at hand instead of a name.
using HeldNoun = std::variant<Held<Machine>, Held<Model>, Held<Gpu>, Held<SystemSpec>,
                              Held<ExpertLayout>, Held<NamedRouting>>;

/// Where a value goes. Outlives no request.
struct Target {
    ValueKind kind = ValueKind::text;
    /// Throws InputError, which begins with the option's name: what was found, what is allowed. Of
    /// a list called once for each value, after `clear`.
    std::function<void(std::string_view option, const std::string& text)> read;
    std::function<void(const HeldNoun&)> give = {};  ///< empty: it takes no objects
    std::function<void()> clear = {};                ///< empties a list
    bool list = false;                               ///< the option may be repeated
    bool commas = false;                    ///< one text holds several values with commas between
    std::string usual = {};                 ///< what stands there already, as help shows it
    std::vector<std::string> choices = {};  ///< all that is allowed, where it can be counted up
    std::function<std::vector<std::string>()> keys = {};  ///< all KEYs that settings may have
    std::string type = {};  ///< what help calls the value; empty: by its kind
};

/// Smallest and largest whole number allowed.
struct Range {
    std::int64_t least;
    std::int64_t most;
};
inline constexpr Range kThreads{1, 4096};
/// What the upper limit is shows when things are loaded.
constexpr Range at_least(std::int64_t least) {
    return {least, std::numeric_limits<int>::max()};
}

/// Texts read at the door. Throw InputError, which begins with the option's name: whole numbers
/// within the range, numbers from 0 to `most`, sizes, times.
std::int64_t count_of(std::string_view option, const std::string& text, Range allowed);
double number_of(std::string_view option, const std::string& text, double most,
                 std::string_view allowed);
Bytes size_of(std::string_view option, const std::string& text);
Ps time_of(std::string_view option, const std::string& text);
/// Only "true" and "false" are allowed.
bool flag_of(std::string_view option, const std::string& text);

/// What stands in a field before anything is read, as help shows it; nothing of an empty one.
template <class Value>
std::string usual_of(const Value& value) {
    if constexpr (requires { value.has_value(); })
        return value ? usual_of(*value) : "";
    else
        return fmt::format("{}", value);
}

/// Fields that hold a value, or may.
template <class Field, class... Values>
concept FieldOf = ((std::same_as<Field, Values> || std::same_as<Field, std::optional<Values>>) ||
                   ...);

/// A field that one text is read into.
template <class Field, class Read>
Target single(ValueKind kind, Field& field, Read read) {
    Target target;
    target.kind = kind;
    target.usual = usual_of(field);
    target.read = [&field, read](std::string_view option, const std::string& text) {
        field = read(option, text);
    };
    return target;
}

template <FieldOf<bool> Field>
Target to(Field& flag) {
    Target target = single(ValueKind::flag, flag, flag_of);
    target.usual.clear();
    return target;
}
template <FieldOf<int, std::int64_t> Field>
Target to(Field& count, Range allowed) {
    Target target =
        single(ValueKind::count, count, [=](std::string_view option, const std::string& text) {
            const std::int64_t read = count_of(option, text, allowed);
            if constexpr (FieldOf<Field, int>)
                return static_cast<int>(read);
            else
                return read;
        });
    // What may not be said stands for "as usual", which the option's sentence explains.
    if (!target.usual.empty() && std::stoll(target.usual) < allowed.least) target.usual.clear();
    return target;
}
template <FieldOf<std::uint64_t> Field>
Target to(Field& count) {
    return single(ValueKind::count, count, [](std::string_view option, const std::string& text) {
        constexpr Range kAny{0, std::numeric_limits<std::int64_t>::max()};
        return static_cast<std::uint64_t>(count_of(option, text, kAny));
    });
}
/// "1,2,4".
Target to(std::vector<std::int64_t>& counts, Range allowed);
/// A number from 0 to `most`; `allowed` says so in words.
template <FieldOf<double> Field>
Target to(Field& number, double most, std::string allowed) {
    return single(ValueKind::number, number, [=](std::string_view option, const std::string& text) {
        return number_of(option, text, most, allowed);
    });
}
/// Bytes, at least one, as nccl-tests takes them, too: no unit means bytes; K, M, G and T alone
/// mean KiB … TiB.
template <FieldOf<Bytes> Field>
Target to_size(Field& size) {
    return single(ValueKind::size, size, size_of);
}
/// "10 us".
Target to_time(Ps& time);
Target to_time(std::optional<Ps>& time);
template <FieldOf<std::string> Field>
Target to_text(Field& text, std::string type = "TEXT", ValueKind kind = ValueKind::text) {
    Target target =
        single(kind, text, [](std::string_view, const std::string& read) { return read; });
    target.type = std::move(type);
    return target;
}
Target to_texts(std::vector<std::string>& texts, ValueKind kind = ValueKind::text);
template <FieldOf<std::string> Field>
Target to_file(Field& path) {
    Target target = to_text(path, "", ValueKind::file);
    target.read = [&path](std::string_view option, const std::string& text) {
        if (text.empty()) bad_input("{}: found \"\", allowed: a file", option);
        path = text;
    };
    return target;
}
/// Names of presets or files.
template <class Noun>
Target to(Wanted<Noun>& noun);
template <class Noun>
Target to(std::vector<Wanted<Noun>>& nouns);
template <class Noun>
Target to(std::optional<std::vector<Wanted<Noun>>>& nouns);
/// Recorded routing, FILE[:from-to][@weight]; a list.
Target to_profiles(std::vector<Wanted<NamedRouting>>& profiles);
/// "KEY=VALUE": keys of the first noun as they are, of others as "model.KEY", "system.NAME.KEY".
/// Nouns are machine, gpu, model, system, trainer, engine.
Target to(Settings& settings, std::vector<std::string> nouns);
/// What a function makes of the text; the function throws InputError without the option's name.
template <class Value>
Target to_parsed(Value& value, Value (*parse)(const std::string&), std::string type) {
    Target target;
    target.type = std::move(type);
    target.read = [&value, parse](std::string_view option, const std::string& text) {
        try {
            value = parse(text);
        } catch (const InputError& error) {
            bad_input("{}: {}", option, error.what());
        }
    };
    return target;
}

/// The refusal of a name that is none of those known.
[[noreturn]] void refuse_name(std::string_view option, const std::string& found,
                              const std::vector<std::string>& known);

/// Names that stand for values; the field is an enum or an optional one.
template <class Value>
using Named = std::vector<std::pair<std::string, Value>>;

template <class Field, class Value>
Target to(Field& field, const Named<Value>& names) {
    Target target;
    target.kind = ValueKind::choice;
    for (const auto& [name, value] : names) {
        target.choices.push_back(name);
        if (Field(value) == field) target.usual = name;
    }
    target.read = [&field, names, known = target.choices](std::string_view option,
                                                          const std::string& text) {
        for (const auto& [name, value] : names)
            if (name == text) {
                field = value;
                return;
            }
        refuse_name(option, text, known);
    };
    return target;
}

/// Names of an enum's values, as a name_of() gives them.
template <class Value>
Named<Value> named(std::initializer_list<Value> values) {
    Named<Value> names;
    for (const Value value : values) names.emplace_back(name_of(value), value);
    return names;
}

/// What options have to do with one another; options are named as they are typed.
struct OptionRules {
    bool required = false;
    bool many = false;  ///< several values of a list may follow one mention
    std::string needs = {};
    std::vector<std::string> excludes = {};
    unsigned forms = ~0u;  ///< forms of the question (Question::forms) that have it, a bit each
};
inline const OptionRules kRequired{.required = true};
inline const OptionRules kMany{.many = true};
inline OptionRules in_forms(unsigned forms) {
    return {.forms = forms};
}
inline OptionRules needs(std::string option, unsigned forms = ~0u) {
    return {.needs = std::move(option), .forms = forms};
}
inline OptionRules excludes(std::vector<std::string> options, unsigned forms = ~0u) {
    return {.excludes = std::move(options), .forms = forms};
}

struct Option {
    std::string names;  ///< "-o,--output"; without dashes an argument known by its position
    Target target;
    std::string doc;
    OptionRules rules = {};
};
using Options = std::vector<Option>;

/// What it is called as a key of a study and in Python: "page_rows" of "--page-rows".
std::string key_of(const Option& option);
/// The last of its names, as errors call it: "--output".
std::string name_of(const Option& option);
std::vector<std::string> names_of(const Option& option);
bool is_argument(const Option& option);  ///< known by its position
/// What help calls the value: "N", "FILE", "packet|row"; nothing of a flag.
std::string type_of(const Option& option);
const Option* find_option(const Options& options, std::string_view key);
void append(Options& options, Options more);
/// Parts of a question's options as one.
Options joined(std::vector<Options> parts);

/// One option as somebody said it: texts, or objects. A list of both is said in several parts, one
/// behind another, so that it keeps its order.
struct SaidOption {
    std::string key;
    std::vector<std::string> texts;  ///< values; a flag's is "true" or "false"
    std::vector<HeldNoun> given = {};
};
using Said = std::vector<SaidOption>;
bool has(const Said& said, std::string_view key);

/// Sets what was said, in the order of the options. Throws InputError for a key that no option has,
/// a value that is wrong, and options that cannot stand together or lack one that they need.
void fill(const Options& options, const Said& said);

/// Whether an option was said, and not as a flag that is off.
bool is_on(const Options& options, const Said& said, std::string_view key);

/// "a, b" as {"a", "b"}; nothing between two commas is a name, an empty one.
std::vector<std::string> listed(const std::string& text);

}  // namespace moehub
