/// TOML text in which a key may have several values: what sweeps are written in.
#pragma once
#include "base/toml.hpp"

namespace moehub {

struct ValuesEntry {
    std::string key;  ///< dotted path
    std::vector<Entry> values;
    bool list = false;  ///< an array; else one value
    int line = 0;       ///< from 1
};

/// As read_toml, but arrays of plain values (texts, numbers, true and false) are lists. Arrays in
/// arrays and tables in arrays throw InputError. An empty table has no values.
std::vector<ValuesEntry> read_toml_values(std::string_view text, const Origin& origin);

}  // namespace moehub
