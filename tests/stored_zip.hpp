/// A zip archive of stored entries, as torch.save writes them; for tests and fuzzers.
#pragma once
#include "base/zip.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace moehub {

inline std::string little_endian(std::uint64_t value, int width) {
    std::string bytes;
    for (int i = 0; i < width; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xff);
    return bytes;
}

/// Sizes and checksums only in the directory, an extra field in every local header: torch's way.
/// `zip64`: numbers of the directory stand in zip64 records.
inline std::string stored_zip(const std::vector<std::pair<std::string, std::string>>& entries,
                              bool zip64 = false) {
    std::string file, directory;
    for (const auto& [name, bytes] : entries) {
        const auto in64 = [zip64](std::uint64_t value) {
            return little_endian(zip64 ? 0xFFFFFFFF : value, 4);
        };
        const std::string extra =
            zip64 ? little_endian(1, 2) + little_endian(24, 2) + little_endian(bytes.size(), 8) +
                        little_endian(bytes.size(), 8) + little_endian(file.size(), 8)
                  : "";
        directory += "PK\1\2" + std::string(4, '\0') + little_endian(8, 2) + std::string(6, '\0') +
                     little_endian(crc32(bytes), 4) + in64(bytes.size()) + in64(bytes.size()) +
                     little_endian(name.size(), 2) + little_endian(extra.size(), 2) +
                     std::string(10, '\0') + in64(file.size()) + name + extra;
        file += "PK\3\4" + std::string(2, '\0') + little_endian(8, 2) + std::string(18, '\0') +
                little_endian(name.size(), 2) + little_endian(7, 2) + name +
                std::string("FB\3\0ZZZ", 7) + bytes;
    }
    const std::uint64_t at = file.size();
    file += directory;
    if (zip64) {
        const std::uint64_t end = file.size();
        file += "PK\6\6" + little_endian(44, 8) + std::string(12, '\0') +
                little_endian(entries.size(), 8) + little_endian(entries.size(), 8) +
                little_endian(directory.size(), 8) + little_endian(at, 8);
        file += "PK\6\7" + std::string(4, '\0') + little_endian(end, 8) + little_endian(1, 4);
    }
    file += "PK\5\6" + std::string(4, '\0');
    for (int i = 0; i < 2; ++i) file += little_endian(zip64 ? 0xFFFF : entries.size(), 2);
    return file + little_endian(zip64 ? 0xFFFFFFFF : directory.size(), 4) +
           little_endian(zip64 ? 0xFFFFFFFF : at, 4) + std::string(2, '\0');
}

}  // namespace moehub
