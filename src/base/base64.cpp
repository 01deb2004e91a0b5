#include "base/base64.hpp"

#include <array>
#include <cstdint>

namespace moehub {
namespace {

constexpr std::uint8_t kNoDigit = 0xff;

constexpr std::array<std::uint8_t, 256> make_digits() {
    std::array<std::uint8_t, 256> digits{};
    for (auto& digit : digits) digit = kNoDigit;
    constexpr std::string_view kAlphabet =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (std::size_t i = 0; i < kAlphabet.size(); ++i)
        digits[static_cast<unsigned char>(kAlphabet[i])] = static_cast<std::uint8_t>(i);
    return digits;
}

constexpr auto kDigits = make_digits();

std::uint32_t digit(char c) {
    return kDigits[static_cast<unsigned char>(c)];
}

}  // namespace

std::optional<std::string> base64_decoded(std::string_view text) {
    if (text.size() % 4 == 0)
        for (int padding = 0; padding < 2 && text.ends_with('='); ++padding) text.remove_suffix(1);
    const std::size_t tail = text.size() % 4;
    if (tail == 1) return std::nullopt;
    std::string bytes(text.size() / 4 * 3 + (tail == 0 ? 0 : tail - 1), '\0');
    std::size_t to = 0;
    const auto put = [&bytes, &to](std::uint32_t byte) { bytes[to++] = static_cast<char>(byte); };
    std::uint32_t seen = 0;  // all digits ORed: one that is none sets the high bits
    std::size_t from = 0;
    for (; from + 4 <= text.size(); from += 4) {
        const std::uint32_t a = digit(text[from]), b = digit(text[from + 1]);
        const std::uint32_t c = digit(text[from + 2]), d = digit(text[from + 3]);
        seen |= a | b | c | d;
        put((a << 2) | (b >> 4));
        put((b << 4) | (c >> 2));
        put((c << 6) | d);
    }
    if (tail > 0) {
        const std::uint32_t a = digit(text[from]), b = digit(text[from + 1]);
        const std::uint32_t c = tail == 3 ? digit(text[from + 2]) : 0;
        seen |= a | b | c;
        put((a << 2) | (b >> 4));
        if (tail == 3) put((b << 4) | (c >> 2));
    }
    if (seen > 63) return std::nullopt;
    return bytes;
}

}  // namespace moehub
