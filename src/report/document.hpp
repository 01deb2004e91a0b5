/// The JSON documents that commands print; docs/json.md says what they hold.
#pragma once
#include "base/json.hpp"

#include <string>
#include <string_view>

namespace moehub {

/// Goes up when a key that was there is renamed, removed or means something else.
inline constexpr int kSchemaVersion = 1;

/// The command's results, an object, with what says how to read them in front:
/// "schema": {"command": "compare", "version": 1}.
Json document(std::string_view command, Json results);
std::string document_text(std::string_view command, Json results);

}  // namespace moehub
