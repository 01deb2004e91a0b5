#include "base/fields.hpp"
#include "base/json.hpp"
#include "base/quantity.hpp"

#include <fmt/format.h>

namespace moehub {
namespace {

/// As TOML writes it; empty when the field is an empty text.
std::string toml_value(const Row& row) {
    if (const auto* text = std::get_if<std::string*>(&row.slot))
        return (*text)->empty() ? "" : toml_string(**text);
    if (const auto* flag = std::get_if<bool*>(&row.slot)) return **flag ? "true" : "false";
    if (const auto* choice = std::get_if<Choice>(&row.slot))
        return toml_string(choice->names.at(choice->get()));
    double value = 0;
    if (const auto* small = std::get_if<int*>(&row.slot)) value = **small;
    if (const auto* whole = std::get_if<std::int64_t*>(&row.slot))
        value = static_cast<double>(**whole);
    if (const auto* real = std::get_if<double*>(&row.slot)) value = **real;
    const std::string text = print_value(row.kind, value);
    return row.kind == Kind::count || row.kind == Kind::number ? text : toml_string(text);
}

Json json_value(const Row& row) {
    if (const auto* choice = std::get_if<Choice>(&row.slot)) return choice->names.at(choice->get());
    if (const auto* text = std::get_if<std::string*>(&row.slot)) return **text;
    if (const auto* flag = std::get_if<bool*>(&row.slot)) return **flag;
    if (const auto* small = std::get_if<int*>(&row.slot)) return **small;
    if (const auto* whole = std::get_if<std::int64_t*>(&row.slot)) return **whole;
    return *std::get<double*>(row.slot);
}

/// "link." of "link.bandwidth"; empty at the top.
std::string table_of(const std::string& key) {
    const std::size_t dot = key.rfind('.');
    return dot == std::string::npos ? "" : key.substr(0, dot);
}

}  // namespace

std::string print_toml(const Rows& rows) {
    std::string text, table;
    for (const Row& row : rows) {
        const std::string value = toml_value(row);
        if (value.empty()) continue;
        if (const std::string next = table_of(row.key); next != table) {
            table = next;
            text += fmt::format("\n[{}]\n", table);
        }
        const std::string key = table.empty() ? row.key : row.key.substr(table.size() + 1);
        text += fmt::format("{:<40}# {}\n", fmt::format("{} = {} ", key, value), row.doc);
    }
    return text;
}

std::string print_json(const Rows& rows) {
    Json root = Json::object();
    for (const Row& row : rows) {
        Json* table = &root;
        std::string_view key = row.key;
        for (auto dot = key.find('.'); dot != std::string_view::npos; dot = key.find('.')) {
            table = &(*table)[key.substr(0, dot)];
            key.remove_prefix(dot + 1);
        }
        (*table)[key] = json_value(row);
    }
    return root.dump(2) + "\n";
}

}  // namespace moehub
