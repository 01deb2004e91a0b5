/// Text in pages and pictures.
#pragma once
#include <string>
#include <string_view>

namespace moehub {

/// Fit for text and attributes of SVG and HTML: markup escaped, control characters and broken UTF-8
/// made visible.
std::string escaped(std::string_view text);

}  // namespace moehub
