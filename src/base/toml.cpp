#include "base/toml.hpp"

#include "base/input_error.hpp"
#include "base/quantity.hpp"
#include "base/utf8.hpp"

#include <algorithm>
#include <cmath>

#include <toml++/toml.h>

namespace moehub {
namespace {

// toml++ builds and frees nested tables by recursion, one level per dot or bracket: without a
// bound a file of dots overflows the stack.
constexpr int kMostNesting = 4000;

[[noreturn]] void fail_as_toml(const Origin& origin, std::ptrdiff_t line, std::string_view what) {
    throw input_error("{}:{}: not TOML: {}", origin, line, what);
}

/// Counts dots and brackets outside quotes and comments of one line. Refuses what toml++ 3.3 has
/// undefined behaviour on and no file needs: letters outside ASCII that stand outside quotes, and
/// strings over several lines.
int nesting_of(std::string_view text, const Origin& origin, std::ptrdiff_t line) {
    int nesting = 0;
    char quote = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (quote != 0) {
            if (c == '\\' && quote == '"') ++i;
            if (c == quote) quote = 0;
        } else if (c == '#') {
            return nesting;
        } else if (c == '"' || c == '\'') {
            if (text.substr(i).starts_with(std::string(3, c)))
                fail_as_toml(origin, line, "strings over several lines are not supported");
            quote = c;
        } else if (static_cast<unsigned char>(c) >= 0x80) {
            fail_as_toml(origin, line, "a character outside ASCII must stand in quotes");
        } else if (c == '.' || c == '[' || c == '{') {
            ++nesting;
        }
    }
    return nesting;
}

void check(std::string_view text, const Origin& origin) {
    if (text.size() > kLongestToml)
        throw input_error("{}: {} bytes, at most {} allowed", origin, text.size(), kLongestToml);
    const std::size_t bad = first_bad_utf8(text);
    if (bad != text.size())
        fail_as_toml(origin, 1 + std::count(text.begin(), text.begin() + std::ptrdiff_t(bad), '\n'),
                     "text that is not UTF-8");
    int nesting = 0;
    std::ptrdiff_t line = 1;
    for (std::string_view rest = text; !rest.empty(); ++line) {
        const std::string_view one = rest.substr(0, rest.find('\n'));
        nesting += nesting_of(one, origin, line);
        rest.remove_prefix(std::min(one.size() + 1, rest.size()));
    }
    if (nesting > kMostNesting)
        throw input_error("{}: {} dots and opening brackets, at most {} allowed", origin, nesting,
                          kMostNesting);
}

Entry to_entry(std::string key, const toml::node& node) {
    Entry entry{std::move(key), "", Entry::Type::other, static_cast<int>(node.source().begin.line)};
    if (const auto* string = node.as_string()) {
        entry.type = Entry::Type::string;
        entry.text = string->get();
    } else if (const auto* integer = node.as_integer()) {
        entry.type = Entry::Type::integer;
        entry.text = std::to_string(integer->get());
    } else if (const auto* real = node.as_floating_point()) {
        entry.type = Entry::Type::real;
        const double value = real->get();
        entry.text = std::isfinite(value) ? print_number(value) : std::isnan(value) ? "nan" : "inf";
    } else if (const auto* boolean = node.as_boolean()) {
        entry.type = Entry::Type::boolean;
        entry.text = boolean->get() ? "true" : "false";
    } else if (node.is_table()) {
        entry.type = Entry::Type::table;
        entry.text = "a table";
    } else {
        entry.text = node.is_array() ? "an array" : "a date or time";
    }
    return entry;
}

/// Calls take(path, node) for everything but tables that hold something.
template <class Take>
void flatten(const toml::table& table, const std::string& prefix, const Take& take) {
    for (const auto& [key, node] : table) {
        std::string path = prefix + std::string(key.str());
        const toml::table* inner = node.as_table();
        if (inner && !inner->empty())
            flatten(*inner, path + ".", take);
        else
            take(std::move(path), node);
    }
}

template <class Take>
void parse(std::string_view text, const Origin& origin, const Take& take) {
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
    if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
    check(text, origin);
    try {
        flatten(toml::parse(text), "", take);
    } catch (const toml::parse_error& error) {
        fail_as_toml(origin, error.source().begin.line, printable(error.description()));
    }
}

template <class Lined>
void sort_by_line(std::vector<Lined>& entries) {
    std::stable_sort(entries.begin(), entries.end(),
                     [](const Lined& a, const Lined& b) { return a.line < b.line; });
}

}  // namespace

std::vector<Entry> read_toml(std::string_view text, const Origin& origin) {
    std::vector<Entry> entries;
    parse(text, origin, [&](std::string path, const toml::node& node) {
        entries.push_back(to_entry(std::move(path), node));
    });
    sort_by_line(entries);
    return entries;
}

std::vector<ValuesEntry> read_toml_values(std::string_view text, const Origin& origin) {
    std::vector<ValuesEntry> entries;
    parse(text, origin, [&](const std::string& path, const toml::node& node) {
        ValuesEntry made{path, {}, node.is_array(), static_cast<int>(node.source().begin.line)};
        const auto take = [&](const toml::node& value) {
            made.values.push_back(to_entry(path, value));
            const Entry& entry = made.values.back();
            if (entry.type == Entry::Type::other || entry.type == Entry::Type::table)
                throw input_error(
                    "{}expected text, a number, true or false, or a list of them, found {}",
                    at(origin, entry), entry.text);
        };
        if (const toml::array* array = node.as_array())
            for (const toml::node& value : *array) take(value);
        else if (!node.is_table())
            take(node);
        entries.push_back(std::move(made));
    });
    sort_by_line(entries);
    return entries;
}

Entry read_override(std::string_view text) {
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos || equals == 0)
        throw input_error("--set: expected KEY=VALUE such as link.latency=\"250 ns\", found {}",
                          quoted(text));
    return {std::string(text.substr(0, equals)), std::string(text.substr(equals + 1)),
            Entry::Type::word, 0};
}

std::string toml_string(std::string_view text) {
    std::string result = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\')
            result += {'\\', c};
        else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
            result += fmt::format("\\u{:04X}", static_cast<unsigned char>(c));
        else
            result += c;
    }
    return result + '"';
}

std::string line_of(const Origin& origin, const Entry& entry) {
    return entry.line > 0 ? fmt::format("{}:{}", origin, entry.line) : origin;
}

std::string at(const Origin& origin, const Entry& entry) {
    return fmt::format("{}: {}: ", line_of(origin, entry),
                       printable(std::string_view(entry.key).substr(0, 80)));
}

}  // namespace moehub
