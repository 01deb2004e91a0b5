/// Whole files as bytes.
#pragma once
#include <cstdint>
#include <string>

namespace moehub {

/// Reads the file of that path; throws InputError, one line that names it, when there is none, it
/// is no regular file, or it is larger than `most` bytes.
std::string read_bytes(const std::string& path, std::uint64_t most);

}  // namespace moehub
