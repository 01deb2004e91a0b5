/// Where machines, models and GPUs come from: presets of the binary and files, read and followed
/// along `extends`.
#pragma once
#include "base/toml.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace moehub {

struct Document {
    Origin origin;       ///< for errors
    std::string name;    ///< of the preset, or the file without folder and ".toml"
    std::string folder;  ///< of the file, against which it names others; empty: a preset
    std::vector<Entry> entries;
    std::string text;  ///< as written, comments and all
};

/// The document with what it extends, base first. `extends` is taken out; name and title stay
/// only in the last. Kinds as in preset_names().
std::vector<Document> load_chain(std::string_view kind, const std::string& name_or_path);
std::vector<Document> parse_chain(std::string_view kind, std::string_view text,
                                  const Origin& origin);

/// A file named inside `document`, relative to its folder; a preset's name stays as it is.
std::string resolved(const Document& document, const std::string& name_or_path);

}  // namespace moehub
