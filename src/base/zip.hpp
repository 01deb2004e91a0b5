/// Zip archives whose entries are stored, not compressed: what torch.save writes. Zip64 too.
/// Every error is an InputError of one line, "file: …".
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace moehub {

/// The checksum of zip files.
std::uint32_t crc32(std::string_view bytes);

class ZipArchive {
  public:
    struct Entry {
        std::string_view name;
        std::uint64_t header = 0;  ///< where its local header begins
        std::uint64_t size = 0;
        std::uint32_t checksum = 0;
    };

    /// Parses the bytes of a file, which must outlive the archive; `file` is its name in errors.
    /// Refuses compressed and encrypted entries, equal names, and entries that are longer together
    /// than the file.
    static ZipArchive parse(std::string_view bytes, const std::string& file);

    /// Entries ascending by name.
    const std::vector<Entry>& entries() const { return entries_; }
    /// The entry of that name; null when there is none.
    const Entry* find(std::string_view name) const;
    /// The bytes of an entry, compared with its checksum.
    std::string_view contents(const Entry& entry) const;

  private:
    ZipArchive(std::string_view bytes, std::string file) : bytes_(bytes), file_(std::move(file)) {}
    [[noreturn]] void fail(std::string_view what) const;
    [[noreturn]] void fail(const Entry& entry, std::string_view what) const;
    std::uint64_t number(std::uint64_t at, unsigned width) const;
    struct Directory {
        std::uint64_t at = 0, size = 0, entries = 0;
    };
    Directory find_directory() const;
    void take_zip64(std::uint64_t end, Directory& directory) const;
    std::uint64_t take_entry(std::uint64_t at);
    void take_extra(std::string_view extra, Entry& entry, std::uint64_t stored) const;
    void check_entries() const;

    std::string_view bytes_;
    std::string file_;
    std::vector<Entry> entries_;
};

}  // namespace moehub
