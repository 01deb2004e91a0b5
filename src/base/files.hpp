/// Files that are read and written whole, and whether two names are one file.
#pragma once
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace moehub {

/// Writes into a temporary neighbour first, then renamed, so that a reader sees the old file or the
/// whole new one; a link is followed, not replaced. Pipes and devices are written directly. Throws
/// InputError naming the path.
void write_file(const std::string& path, std::string_view text);

/// Writes all of it and flushes; 0, or the error number.
int write_stream(std::string_view text, std::FILE* stream);

/// Whether the path is a pipe or a device.
bool is_device(const std::string& path);

/// True when both paths lead to one file, there or not yet.
bool same_file(const std::string& a, const std::string& b);

/// Throws "file: what" as InputError.
[[noreturn]] void fail_in(const std::string& file, std::string_view what);
template <class Value, class... Values>
[[noreturn]] void fail_in(const std::string& file, fmt::format_string<Value, Values...> what,
                          Value&& value, Values&&... values) {
    fail_in(file, fmt::format(what, std::forward<Value>(value), std::forward<Values>(values)...));
}

/// Reads the file of that path; throws InputError, one line that names it, when there is none, it
/// is no regular file, or it is larger than `most` bytes.
std::string read_bytes(const std::string& path, std::uint64_t most);

}  // namespace moehub
