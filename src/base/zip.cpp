// The format: PKWARE's APPNOTE.TXT, sections 4.3 and 4.5.3. Sizes and checksums are those of the
// central directory at the file's end; torch.save leaves them out of the local headers.
#include "base/zip.hpp"

#include "base/input_error.hpp"
#include "base/quantity.hpp"
#include "base/utf8.hpp"

#include <algorithm>

#include <zlib.h>

namespace moehub {
namespace {

constexpr std::uint64_t kEndSize = 22, kLocatorSize = 20, kEnd64Size = 56;
constexpr std::uint64_t kEntrySize = 46, kLocalSize = 30;
constexpr std::uint64_t kEndMark = 0x06054b50, kLocatorMark = 0x07064b50, kEnd64Mark = 0x06064b50;
constexpr std::uint64_t kEntryMark = 0x02014b50, kLocalMark = 0x04034b50;
constexpr std::uint64_t kIn64 = 0xFFFFFFFF;  ///< the number stands in the zip64 record

std::uint64_t little_endian(std::string_view bytes) {
    std::uint64_t value = 0;
    for (std::size_t i = bytes.size(); i-- > 0;)
        value = value << 8 | static_cast<unsigned char>(bytes[i]);
    return value;
}

}  // namespace

std::uint32_t crc32(std::string_view bytes) {
    return static_cast<std::uint32_t>(
        ::crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

void ZipArchive::fail(std::string_view what) const {
    throw input_error("{}: {}", printable(file_), what);
}

void ZipArchive::fail(const Entry& entry, std::string_view what) const {
    fail(fmt::format("entry {}: {}", quoted(entry.name), what));
}

std::uint64_t ZipArchive::number(std::uint64_t at, unsigned width) const {
    if (at > bytes_.size() || bytes_.size() - at < width) fail("ends within its zip directory");
    return little_endian(bytes_.substr(at, width));
}

ZipArchive::Directory ZipArchive::find_directory() const {
    if (!bytes_.starts_with("PK")) fail("found another kind of file, allowed: a zip archive");
    // A comment of up to 65535 bytes may follow the end record.
    constexpr std::uint64_t kLongestComment = 65535;
    for (std::uint64_t back = kEndSize;
         back <= std::min<std::uint64_t>(bytes_.size(), kEndSize + kLongestComment); ++back) {
        const std::uint64_t end = bytes_.size() - back;
        if (number(end, 4) != kEndMark || number(end + 20, 2) != back - kEndSize) continue;
        Directory directory{number(end + 16, 4), number(end + 12, 4), number(end + 10, 2)};
        take_zip64(end, directory);
        if (directory.at > end || directory.size > end - directory.at ||
            directory.entries > directory.size / kEntrySize)
            fail("found a zip directory larger than the file");
        return directory;
    }
    fail("cut short: has no zip directory at its end");
}

void ZipArchive::take_zip64(std::uint64_t end, Directory& directory) const {
    if (directory.at != kIn64 && directory.size != kIn64 && directory.entries != 0xFFFF) return;
    if (end < kLocatorSize || number(end - kLocatorSize, 4) != kLocatorMark) return;
    const std::uint64_t at = number(end - kLocatorSize + 8, 8);
    if (at > end || end - at < kEnd64Size || number(at, 4) != kEnd64Mark)
        fail("found a zip64 locator that points nowhere");
    directory = {number(at + 48, 8), number(at + 40, 8), number(at + 32, 8)};
}

void ZipArchive::take_extra(std::string_view extra, Entry& entry, std::uint64_t stored) const {
    while (extra.size() >= 4) {
        const std::uint64_t tag = little_endian(extra.substr(0, 2));
        const std::uint64_t size = little_endian(extra.substr(2, 2));
        std::string_view field = extra.substr(4, size);
        if (field.size() < size) break;
        extra.remove_prefix(4 + size);
        if (tag != 1) continue;
        // Only those of the three numbers that did not fit, in this order.
        for (std::uint64_t* value : {&entry.size, &stored, &entry.header})
            if (*value == kIn64 && field.size() >= 8) {
                *value = little_endian(field.substr(0, 8));
                field.remove_prefix(8);
            }
    }
    if (stored != entry.size) fail(entry, "found two sizes, allowed: one, stored");
}

std::uint64_t ZipArchive::take_entry(std::uint64_t at) {
    if (number(at, 4) != kEntryMark) fail("found a broken zip directory");
    const std::uint64_t name = number(at + 28, 2), extra = number(at + 30, 2);
    const std::uint64_t next = at + kEntrySize + name + extra + number(at + 32, 2);
    if (next > bytes_.size()) fail("ends within its zip directory");
    Entry entry{bytes_.substr(at + kEntrySize, name), number(at + 42, 4), number(at + 24, 4),
                static_cast<std::uint32_t>(number(at + 16, 4))};
    if ((number(at + 8, 2) & 1) != 0) fail(entry, "encrypted, allowed: plain");
    if (number(at + 10, 2) != 0) fail(entry, "compressed, allowed: stored (as torch.save does)");
    take_extra(bytes_.substr(at + kEntrySize + name, extra), entry, number(at + 20, 4));
    entries_.push_back(entry);
    return next;
}

void ZipArchive::check_entries() const {
    std::uint64_t left = bytes_.size();
    for (std::size_t i = 0; i < entries_.size(); ++i) {
        if (i > 0 && entries_[i - 1].name == entries_[i].name) fail(entries_[i], "stands twice");
        if (entries_[i].size > left) fail(entries_[i], "cut short, or longer than the file");
        left -= entries_[i].size;
    }
}

ZipArchive ZipArchive::parse(std::string_view bytes, const std::string& file) {
    ZipArchive archive(bytes, file);
    const Directory directory = archive.find_directory();
    archive.entries_.reserve(directory.entries);
    std::uint64_t at = directory.at;
    for (std::uint64_t i = 0; i < directory.entries; ++i) at = archive.take_entry(at);
    std::sort(archive.entries_.begin(), archive.entries_.end(),
              [](const Entry& a, const Entry& b) { return a.name < b.name; });
    archive.check_entries();
    return archive;
}

const ZipArchive::Entry* ZipArchive::find(std::string_view name) const {
    const auto found =
        std::lower_bound(entries_.begin(), entries_.end(), name,
                         [](const Entry& entry, std::string_view key) { return entry.name < key; });
    return found != entries_.end() && found->name == name ? &*found : nullptr;
}

std::string_view ZipArchive::contents(const Entry& entry) const {
    if (entry.header > bytes_.size() || number(entry.header, 4) != kLocalMark)
        fail(entry, "is not where the zip directory says");
    const std::uint64_t from =
        entry.header + kLocalSize + number(entry.header + 26, 2) + number(entry.header + 28, 2);
    if (from > bytes_.size() || bytes_.size() - from < entry.size) fail(entry, "cut short");
    const std::string_view bytes = bytes_.substr(from, entry.size);
    if (crc32(bytes) != entry.checksum) fail(entry, "damaged: its checksum does not match");
    return bytes;
}

}  // namespace moehub
