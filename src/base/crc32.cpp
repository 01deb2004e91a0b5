// Eight bytes at a time ("slicing by eight", Kounavis and Berry 2005): table k holds the checksum
// of a byte that k zero bytes follow, and checksums add by XOR.
#include "base/crc32.hpp"

#include <array>
#include <bit>
#include <cstring>

namespace moehub {
namespace {

static_assert(std::endian::native == std::endian::little, "words are used as they lie in memory");

using Tables = std::array<std::array<std::uint32_t, 256>, 8>;

constexpr Tables make_tables() {
    Tables tables{};
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
        std::uint32_t value = byte;
        for (int bit = 0; bit < 8; ++bit)
            value = (value >> 1) ^ ((value & 1) != 0 ? 0xEDB88320u : 0u);
        tables[0][byte] = value;
    }
    for (std::size_t k = 1; k < tables.size(); ++k)
        for (std::size_t byte = 0; byte < 256; ++byte) {
            const std::uint32_t before = tables[k - 1][byte];
            tables[k][byte] = (before >> 8) ^ tables[0][before & 0xff];
        }
    return tables;
}

constexpr Tables kTables = make_tables();

}  // namespace

std::uint32_t crc32(std::string_view bytes) {
    std::uint32_t value = 0xFFFFFFFFu;
    const char* at = bytes.data();
    std::size_t left = bytes.size();
    for (; left >= 8; left -= 8, at += 8) {
        std::uint64_t word;
        std::memcpy(&word, at, 8);
        word ^= value;
        value = 0;
        for (std::size_t k = 0; k < 8; ++k) value ^= kTables[7 - k][(word >> (8 * k)) & 0xff];
    }
    for (; left > 0; --left, ++at)
        value = (value >> 8) ^ kTables[0][(value ^ static_cast<unsigned char>(*at)) & 0xff];
    return ~value;
}

}  // namespace moehub
