#include "base/fields.hpp"
#include "base/json.hpp"
#include "base/quantity.hpp"

#include <fmt/format.h>

namespace moehub {
namespace {

/// As TOML writes it; empty when the field is an empty text.
std::string toml_value(const Field& field) {
    if (const auto* text = std::get_if<std::string*>(&field.pointer))
        return (*text)->empty() ? "" : toml_string(**text);
    if (const auto* flag = std::get_if<bool*>(&field.pointer)) return **flag ? "true" : "false";
    if (const auto* choice = std::get_if<Choice>(&field.pointer))
        return toml_string(choice->names.at(choice->get()));
    const std::string text = print_value(field.kind, number_in(field.pointer).value());
    return field.kind == Kind::count || field.kind == Kind::number ? text : toml_string(text);
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

/// "link." of "link.bandwidth"; empty at the top.
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
