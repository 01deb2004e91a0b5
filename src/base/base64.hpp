/// Base64 (RFC 4648, the usual alphabet).
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace moehub {

/// The bytes that the text stands for; nothing when it is not base64. The padding may be missing,
/// but not wrong.
std::optional<std::string> base64_decoded(std::string_view text);

}  // namespace moehub
