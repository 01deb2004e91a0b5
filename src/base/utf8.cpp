#include "base/utf8.hpp"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

namespace moehub {
namespace {

struct CodePoint {
    std::uint32_t value = 0;
    std::size_t bytes = 0;  ///< 0: not well-formed
};

std::size_t sequence_length(unsigned char lead) {
    if (lead < 0x80) return 1;
    if (lead >= 0xC2 && lead < 0xE0) return 2;
    if (lead >= 0xE0 && lead < 0xF0) return 3;
    if (lead >= 0xF0 && lead < 0xF5) return 4;
    return 0;
}

CodePoint decode(std::string_view text) {
    const auto lead = static_cast<unsigned char>(text[0]);
    const std::size_t length = sequence_length(lead);
    if (length == 0 || length > text.size()) return {};
    std::uint32_t value = length == 1 ? lead : lead & (0x7Fu >> length);
    for (std::size_t i = 1; i < length; ++i) {
        const auto byte = static_cast<unsigned char>(text[i]);
        if ((byte & 0xC0) != 0x80) return {};
        value = value << 6 | (byte & 0x3Fu);
    }
    const bool overlong = (length == 3 && value < 0x800) || (length == 4 && value < 0x10000);
    const bool surrogate = value >= 0xD800 && value < 0xE000;
    if (overlong || surrogate || value > 0x10FFFF) return {};
    return {value, length};
}

std::size_t columns(std::uint32_t c) {
    const auto within = [c](std::uint32_t first, std::uint32_t last) {
        return c >= first && c <= last;
    };
    if (within(0x300, 0x36F) || within(0x200B, 0x200F) || within(0xFE00, 0xFE0F)) return 0;
    if (within(0x1100, 0x115F) || within(0x2E80, 0xA4CF) || within(0xAC00, 0xD7A3) ||
        within(0xF900, 0xFAFF) || within(0xFE30, 0xFE6F) || within(0xFF00, 0xFF60) ||
        within(0x1F300, 0x1FAFF) || within(0x20000, 0x3FFFD))
        return 2;
    return 1;
}

bool is_control(std::uint32_t c) {
    return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x2028 || c == 0x2029;
}

}  // namespace

std::size_t first_bad_utf8(std::string_view text) {
    for (std::size_t at = 0; at < text.size();) {
        const auto c = decode(text.substr(at));
        if (c.bytes == 0) return at;
        at += c.bytes;
    }
    return text.size();
}

std::size_t display_width(std::string_view text) {
    std::size_t width = 0;
    for (std::size_t at = 0; at < text.size();) {
        const auto c = decode(text.substr(at));
        width += c.bytes == 0 ? 1 : columns(c.value);
        at += std::max<std::size_t>(c.bytes, 1);
    }
    return width;
}

std::string printable(std::string_view text) {
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
        const auto c = decode(text.substr(at));
        const std::size_t bytes = std::max<std::size_t>(c.bytes, 1);
        if (c.bytes != 0 && !is_control(c.value)) {
            out += text.substr(at, bytes);
        } else if (text[at] == '\n') {
            out += "\\n";
        } else if (text[at] == '\t') {
            out += "\\t";
        } else {
            for (std::size_t i = at; i < at + bytes; ++i)
                out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[i]));
        }
        at += bytes;
    }
    return out;
}

}  // namespace moehub
