/// The TOML files of presets/, embedded in the binary by cmake/presets.cmake.
#pragma once
#include <span>
#include <string_view>

namespace moehub {

struct EmbeddedPreset {
    std::string_view kind;  ///< folder: "machines", "models", "papers", …
    std::string_view name;  ///< file name without .toml
    std::string_view text;
};

/// All embedded presets, ordered by kind and name.
std::span<const EmbeddedPreset> embedded_presets();

}  // namespace moehub
