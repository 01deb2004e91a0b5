/// Sizes as nccl-tests takes them: "64K", "1m", "2G".
#pragma once
#include <string>
#include <string_view>

namespace moehub {

/// With K, M, G or T alone at its end, in either case, as KiB … TiB; other texts as they are.
inline std::string with_byte_unit(std::string_view text) {
    const auto last = text.find_last_not_of(' ');
    constexpr std::string_view kLetters = "kKmMgGtT";
    if (last == std::string_view::npos || kLetters.find(text[last]) == std::string_view::npos)
        return std::string(text);
    std::string made(text.substr(0, last));
    made += static_cast<char>(text[last] & ~0x20);  // upper case
    return made + "iB";
}

}  // namespace moehub
