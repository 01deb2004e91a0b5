#include "base/fields.hpp"

#include "base/input_error.hpp"
#include "base/json.hpp"
#include "base/nearest.hpp"
#include "base/quantity.hpp"
#include "base/utf8.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace moehub {
namespace {

using Type = Entry::Type;

constexpr double kInexact = 0x1p60;  // what is larger, or no number, is never within limits

/// A number as a double, exact up to 2^53: limits lie below that, so what is rounded is refused.
double parse_value(FieldKind kind, std::string_view text) {
    switch (kind) {
        case FieldKind::time:
            return static_cast<double>(parse_time(text));
        case FieldKind::bytes:
            return static_cast<double>(parse_bytes(text));
        case FieldKind::rate:
            return parse_rate(text);
        case FieldKind::flops:
            return parse_flops(text);
        case FieldKind::frequency:
            return parse_frequency(text);
        case FieldKind::count:
            return static_cast<double>(parse_count(text));
        default:
            return parse_number(text);
    }
}

bool within(const Field& field, double value) {
    return value >= field.limits.min && value <= field.limits.max;
}

std::string allowed(const Field& field) {
    return fmt::format("allowed {} to {}", print_value(field.kind, field.limits.min),
                       print_value(field.kind, field.limits.max));
}

double parse_within(const Field& field, std::string_view text) {
    const double value = parse_value(field.kind, text);
    if (!within(field, value)) throw input_error("found {}, {}", quoted(text), allowed(field));
    return value;
}

std::string parse_text(std::string_view text) {
    const auto control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
    if (text.empty() || text.size() > 200 || first_bad_utf8(text) != text.size() ||
        std::any_of(text.begin(), text.end(), control))
        throw input_error("expected 1 to 200 bytes of text on one line, found {}", quoted(text));
    return std::string(text);
}

bool parse_flag(std::string_view text) {
    if (text != "true" && text != "false")
        throw input_error("expected true or false, found {}", quoted(text));
    return text == "true";
}

std::size_t parse_choice(const Choice& choice, std::string_view text) {
    const auto found = std::find(choice.names.begin(), choice.names.end(), text);
    if (found == choice.names.end())
        throw input_error("expected one of {}, found {}", fmt::join(choice.names, ", "),
                          quoted(text));
    return static_cast<std::size_t>(found - choice.names.begin());
}

/// A TOML value must have the type its key wants: a bare 250 is no time, "8" no count.
void check_type(const Field& field, const Entry& entry) {
    const auto fail = [&entry](std::string_view expected) {
        const bool string = entry.type == Type::string;
        throw input_error("expected {}, found {}{}", expected, string ? "the text " : "",
                          string ? quoted(entry.text) : entry.text);
    };
    const Type type = entry.type;
    if (type == Type::word) return;
    const bool number = type == Type::integer || type == Type::real;
    if (field.kind == FieldKind::count && type != Type::integer) fail("a whole number");
    if (field.kind == FieldKind::number && !number) fail("a number");
    if (field.kind == FieldKind::flag && type != Type::boolean) fail("true or false");
    if ((field.kind == FieldKind::text || field.kind == FieldKind::choice) && type != Type::string)
        fail("text");
    if (type == Type::other || type == Type::table) fail("a quantity in quotes");
}

void assign(const Field& field, const Entry& entry) {
    check_type(field, entry);
    if (const auto* text = std::get_if<std::string*>(&field.pointer))
        **text = parse_text(entry.text);
    else if (const auto* flag = std::get_if<bool*>(&field.pointer))
        **flag = parse_flag(entry.text);
    else if (const auto* choice = std::get_if<Choice>(&field.pointer))
        choice->set(parse_choice(*choice, entry.text));
    else if (const auto* small = std::get_if<int*>(&field.pointer))
        **small = static_cast<int>(parse_within(field, entry.text));
    else if (const auto* whole = std::get_if<std::int64_t*>(&field.pointer))
        **whole = static_cast<std::int64_t>(parse_within(field, entry.text));
    else if (const auto* real = std::get_if<double*>(&field.pointer))
        **real = parse_within(field, entry.text);
}

/// Throws, unless the key is a table of known keys and empty.
void reject_unknown(const Fields& fields, const Entry& entry, const Origin& origin) {
    if (entry.key == "extends")
        throw InputError(at(origin, entry) + "only a file can extend another");
    std::vector<std::string> keys{"extends"};
    for (const Field& field : fields) {
        keys.push_back(field.key);
        if (!field.key.starts_with(entry.key + ".")) continue;
        if (entry.type == Type::table) return;
        throw input_error("{}expected a table such as [{}], found {}", at(origin, entry), entry.key,
                          quoted(entry.text));
    }
    const auto same_end = [&entry](const std::string& key) {
        return key.ends_with("." + entry.key);  // [link] was forgotten
    };
    const auto longer = std::find_if(keys.begin(), keys.end(), same_end);
    const std::string hint = longer == keys.end() ? did_you_mean(entry.key, keys)
                                                  : fmt::format("; did you mean \"{}\"?", *longer);
    throw InputError(at(origin, entry) + "unknown key" + hint);
}

}  // namespace

std::optional<double> number_in(const FieldPointer& pointer) {
    if (const auto* small = std::get_if<int*>(&pointer)) return **small;
    if (const auto* whole = std::get_if<std::int64_t*>(&pointer))
        return static_cast<double>(**whole);
    if (const auto* real = std::get_if<double*>(&pointer)) return **real;
    return std::nullopt;
}

std::string print_value(FieldKind kind, double value) {
    if (!(std::abs(value) < kInexact)) return fmt::format("{}", value);
    switch (kind) {
        case FieldKind::time:
            return print_time(static_cast<Ps>(value));
        case FieldKind::bytes:
            return print_bytes(static_cast<Bytes>(value));
        case FieldKind::rate:
            return print_rate(value);
        case FieldKind::flops:
            return print_flops(value);
        case FieldKind::frequency:
            return print_frequency(value);
        default:
            return print_number(value);
    }
}

void nest(Fields& fields, std::string_view prefix, Fields inner) {
    for (Field& field : inner) field.key.insert(0, prefix);
    fields.insert(fields.end(), std::make_move_iterator(inner.begin()),
                  std::make_move_iterator(inner.end()));
}

Fields optional_fields(Fields fields) {
    for (Field& field : fields) field.need = Need::optional;
    return fields;
}

void apply(const Fields& fields, const Entry& entry, const Origin& origin, Given& given) {
    const auto field = std::find_if(fields.begin(), fields.end(),
                                    [&entry](const Field& r) { return r.key == entry.key; });
    if (field == fields.end()) return reject_unknown(fields, entry, origin);
    try {
        assign(*field, entry);
    } catch (const InputError& error) {
        throw InputError(at(origin, entry) + error.what());
    }
    given.where[entry.key] = line_of(origin, entry);
}

void require_all(const Fields& fields, const Given& given) {
    for (const Field& field : fields)
        if (field.need == Need::required && !given.where.contains(field.key))
            throw input_error("{}: missing key \"{}\" ({})", given.origin, field.key, field.doc);
}

void require_limits(const Fields& fields, const Given& given) {
    for (const Field& field : fields) {
        if (const auto* choice = std::get_if<Choice>(&field.pointer)) {
            if (choice->get() >= choice->names.size())
                refuse(given, field.key, "found number {}, allowed 0 to {}", choice->get(),
                       choice->names.size() - 1);
            continue;
        }
        const auto value = number_in(field.pointer);
        if (value && !within(field, *value))
            refuse(given, field.key, "found {}, {}", print_value(field.kind, *value),
                   allowed(field));
    }
}

void refuse(const Given& given, const std::string& key, std::string_view what) {
    const auto found = given.where.find(key);
    const std::string& where = found == given.where.end() ? given.origin : found->second;
    throw input_error("{}: {}: {}", where, key, what);
}

std::string named(const Given& given, const std::string& key, std::string_view value) {
    const auto found = given.where.find(key);
    const std::string where = found == given.where.end() ? "" : fmt::format(" ({})", found->second);
    return fmt::format("{} = {}{}", key, value, where);
}

namespace {

/// A field's value as TOML writes it; empty when the field is an empty text.
std::string toml_value(const Field& field) {
    if (const auto* text = std::get_if<std::string*>(&field.pointer))
        return (*text)->empty() ? "" : toml_string(**text);
    if (const auto* flag = std::get_if<bool*>(&field.pointer)) return **flag ? "true" : "false";
    if (const auto* choice = std::get_if<Choice>(&field.pointer))
        return toml_string(choice->names.at(choice->get()));
    const std::string text = print_value(field.kind, number_in(field.pointer).value());
    return field.kind == FieldKind::count || field.kind == FieldKind::number ? text
                                                                             : toml_string(text);
}

Json json_value(const Field& field) {
    if (const auto* choice = std::get_if<Choice>(&field.pointer))
        return choice->names.at(choice->get());
    if (const auto* text = std::get_if<std::string*>(&field.pointer)) return **text;
    if (const auto* flag = std::get_if<bool*>(&field.pointer)) return **flag;
    if (const auto* small = std::get_if<int*>(&field.pointer)) return **small;
    if (const auto* whole = std::get_if<std::int64_t*>(&field.pointer)) return **whole;
    return *std::get<double*>(field.pointer);
}

/// The table of a key: "link." of "link.bandwidth"; empty at the top.
std::string table_of(const std::string& key) {
    const std::size_t dot = key.rfind('.');
    return dot == std::string::npos ? "" : key.substr(0, dot);
}

}  // namespace

std::string print_toml(const Fields& fields) {
    std::string text, table;
    for (const Field& field : fields) {
        const std::string value = toml_value(field);
        if (value.empty()) continue;
        if (const std::string next = table_of(field.key); next != table) {
            table = next;
            text += fmt::format("\n[{}]\n", table);
        }
        const std::string key = table.empty() ? field.key : field.key.substr(table.size() + 1);
        text += fmt::format("{:<40}# {}\n", fmt::format("{} = {} ", key, value), field.doc);
    }
    return text;
}

Json json_of(const Fields& fields) {
    Json root = Json::object();
    for (const Field& field : fields) {
        Json* table = &root;
        std::string_view key = field.key;
        for (auto dot = key.find('.'); dot != std::string_view::npos; dot = key.find('.')) {
            table = &(*table)[key.substr(0, dot)];
            key.remove_prefix(dot + 1);
        }
        (*table)[key] = json_value(field);
    }
    return root;
}

std::string print_json(const Fields& fields) {
    return json_of(fields).dump(2) + "\n";
}

}  // namespace moehub
