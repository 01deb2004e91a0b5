/// TOML text flattened to entries: one per value, keyed by its dotted path ("link.bandwidth").
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace moehub {

/// Where text came from, as an error names it: a file's path, or "preset machines/dgx-h100".
using Origin = std::string;

/// Bytes of the longest text that is read.
inline constexpr std::size_t kLongestToml = 256 * 1024;

struct Entry {
    enum class Type {
        string,
        integer,
        real,
        boolean,
        table,  ///< an empty table; others appear as their values
        other,  ///< arrays and dates: never allowed, `text` says which
        word,   ///< from `--set`: whatever the key wants
    };
    std::string key;
    std::string text;  ///< a string's content, or the number as written back
    Type type = Type::word;
    int line = 0;  ///< line from 1; 0: unknown
};

/// Ordered by line. Throws InputError, one line, on anything that is not TOML, on strings over
/// several lines, on more than kLongestToml bytes, and on nesting that no sensible file has.
std::vector<Entry> read_toml(std::string_view text, const Origin& origin);

/// "link.bandwidth=450 GB/s" as an entry. Throws InputError when there is no key or no "=".
Entry read_override(std::string_view text);

/// A TOML basic string, quotes included.
std::string toml_string(std::string_view text);

/// "my.toml:12".
std::string line_of(const Origin& origin, const Entry& entry);

/// The front of an error message: "my.toml:12: link.bandwidth: ".
std::string at(const Origin& origin, const Entry& entry);

/// A key that may have several values: what sweeps are written in.
struct ValuesEntry {
    std::string key;  ///< dotted path
    std::vector<Entry> values;
    bool list = false;  ///< an array; else one value
    int line = 0;       ///< line from 1
};

/// As read_toml, but arrays of plain values (texts, numbers, true and false) are lists. Arrays in
/// arrays and tables in arrays throw InputError. An empty table has no values.
std::vector<ValuesEntry> read_toml_values(std::string_view text, const Origin& origin);

}  // namespace moehub
