/// Tells builds of one version apart.
#pragma once
#include <string_view>

namespace moehub {

/// A checksum of all files in src/, include/ and presets/ that this was built from.
std::string_view source_checksum();

}  // namespace moehub
