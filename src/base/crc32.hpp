/// The checksum of zip files: CRC-32, polynomial 0xEDB88320 (reflected).
#pragma once
#include <cstdint>
#include <string_view>

namespace moehub {

std::uint32_t crc32(std::string_view bytes);

}  // namespace moehub
