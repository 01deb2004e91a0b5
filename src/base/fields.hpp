/// Records: a struct described by a visible table of its fields. Reading TOML, `--set`,
/// validation, printing TOML and printing JSON all follow from the table.
///
///     Fields fields_of(Gpu& gpu) {
///         return {{"sms", &gpu.sms, FieldKind::count, {1, 4096}, "streaming multiprocessors"}, …};
///     }
#pragma once
#include "base/json.hpp"
#include "base/toml.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <fmt/format.h>

namespace moehub {

/// What a field's text means; units as in base/quantity.hpp.
enum class FieldKind { text, flag, count, number, time, bytes, rate, flops, frequency, choice };

/// Smallest and largest value allowed, both included, in base units (ps, bytes, per second).
/// Neither is beyond 2^53, where doubles stop being exact.
struct Limits {
    double min = 0;
    double max = 0;
};

enum class Need { required, optional };

/// An enumeration behind its names, by position.
struct Choice {
    std::vector<std::string> names;
    std::function<std::size_t()> get;
    std::function<void(std::size_t)> set;
};

using FieldPointer = std::variant<std::string*, bool*, int*, std::int64_t*, double*, Choice>;

/// One field of one object: points into the object and lives no longer.
struct Field {
    std::string key;
    FieldPointer pointer;
    FieldKind kind = FieldKind::text;
    Limits limits;
    std::string doc;  ///< one line; a unit only where the value does not show it
    Need need = Need::required;
};
using Fields = std::vector<Field>;

/// The field of an enum whose values are 0, 1, … in the order of `names`.
template <class Enum>
Field one_of(std::string key, Enum& value, std::vector<std::string> names, std::string doc,
             Need need = Need::required) {
    Choice choice{std::move(names), [&value] { return static_cast<std::size_t>(value); },
                  [&value](std::size_t index) { value = static_cast<Enum>(index); }};
    return {std::move(key), std::move(choice), FieldKind::choice, {}, std::move(doc), need};
}

/// Appends `inner` with `prefix` before every key.
void nest(Fields& fields, std::string_view prefix, Fields inner);

/// Where the fields of an object were given, for errors about what must hold between them.
struct Given {
    Origin origin;                                  ///< origin of the object as a whole
    std::map<std::string, std::string> where = {};  ///< by key: "my.toml:12", "--set"; no defaults
};

/// The fields, none of them required.
Fields optional_fields(Fields fields);

/// Sets the field that the entry names and notes where. Throws InputError on an unknown key, a
/// value of the wrong kind and a value outside the limits.
void apply(const Fields& fields, const Entry& entry, const Origin& origin, Given& given);

/// Throws InputError when a required field is not in `given`.
void require_all(const Fields& fields, const Given& given);

/// Throws InputError when a field lies outside its limits, as `apply` would have.
void require_limits(const Fields& fields, const Given& given);

/// Throws InputError: "my.toml:12: top_k: found 9, …".
[[noreturn]] void refuse(const Given& given, const std::string& key, std::string_view what);
template <class Value, class... Values>
[[noreturn]] void refuse(const Given& given, const std::string& key,
                         fmt::format_string<Value, Values...> what, Value&& value,
                         Values&&... values) {
    refuse(given, key,
           fmt::format(what, std::forward<Value>(value), std::forward<Values>(values)...));
}

/// Another field that `refuse` speaks of: "experts = 8 (my.toml:4)".
std::string named(const Given& given, const std::string& key, std::string_view value);

/// The number that the pointer leads to; none for text, flags and choices.
std::optional<double> number_in(const FieldPointer& pointer);

/// "450 GB/s": a value of that kind with its unit.
std::string print_value(FieldKind kind, double value);

/// All fields in table order: read back, they give the same object. Empty texts are left out.
std::string print_toml(const Fields& fields);

/// The fields, nested; quantities are plain numbers in base units (ps, bytes, per second).
Json json_of(const Fields& fields);
std::string print_json(const Fields& fields);

}  // namespace moehub
