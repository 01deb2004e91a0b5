#include "base/file_bytes.hpp"

#include "base/utf8.hpp"

#include <moehub/error.hpp>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

#include <fmt/format.h>

namespace moehub {

std::string read_bytes(const std::string& path, std::uint64_t most) {
    const auto fail = [&path](std::string_view what) {
        throw InputError(fmt::format("{}: {}", printable(path), what));
    };
    std::error_code error;
    if (!std::filesystem::exists(path, error)) fail("no such file");
    if (!std::filesystem::is_regular_file(path, error)) fail("not a regular file");
    const std::uint64_t size = std::filesystem::file_size(path, error);
    if (error) fail("cannot be read: " + error.message());
    if (size > most) fail(fmt::format("found {} bytes, allowed: at most {}", size, most));
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                               &std::fclose);
    if (!file) fail(fmt::format("cannot be read: {}", std::strerror(errno)));
    try {
        std::string bytes(static_cast<std::size_t>(size), '\0');
        if (std::fread(bytes.data(), 1, bytes.size(), file.get()) != bytes.size())
            fail("cannot be read to its end");
        return bytes;
    } catch (const std::bad_alloc&) {
        fail("does not fit in memory");
    }
    return {};
}

}  // namespace moehub
