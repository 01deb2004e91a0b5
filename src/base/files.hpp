/// Files that are written, and whether two names are one file.
#pragma once
#include <cstdio>
#include <string>
#include <string_view>

namespace moehub {

/// Into a temporary neighbour first, then renamed, so that a reader sees the old file or the whole
/// new one; a link is followed, not replaced. Pipes and devices are written directly. Throws
/// InputError naming the path.
void write_file(const std::string& path, std::string_view text);

/// Writes all of it and flushes; 0, or the error number.
int write_stream(std::string_view text, std::FILE* stream);

/// A pipe or a device.
bool is_device(const std::string& path);

/// True when both paths lead to one file, there or not yet.
bool same_file(const std::string& a, const std::string& b);

}  // namespace moehub
