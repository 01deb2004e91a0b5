#include "base/files.hpp"

#include "base/input_error.hpp"
#include "base/utf8.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>

#include <sys/stat.h>
#include <unistd.h>

namespace moehub {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail_to_write(const std::string& path, int error) {
    throw input_error("{}: cannot be written: {}", printable(path), std::strerror(error));
}

int write_directly(std::string_view text, const std::string& path) {
    std::FILE* const file = std::fopen(path.c_str(), "wb");
    if (file == nullptr) return errno;
    const int error = write_stream(text, file);
    const int close_error = std::fclose(file) == 0 ? 0 : errno;
    return error != 0 ? error : close_error;
}

void replace_file(std::string_view text, const std::string& target, const std::string& shown) {
    std::string temporary = target + ".XXXXXX";
    const int descriptor = mkstemp(temporary.data());
    if (descriptor < 0) fail_to_write(shown, errno);
    struct stat old {};
    const mode_t mask = umask(0);
    umask(mask);
    fchmod(descriptor, stat(target.c_str(), &old) == 0 ? old.st_mode & 07777 : 0666 & ~mask);
    close(descriptor);
    int error = write_directly(text, temporary);
    if (error == 0 && std::rename(temporary.c_str(), target.c_str()) != 0) error = errno;
    if (error == 0) return;
    std::remove(temporary.c_str());
    fail_to_write(shown, error);
}

/// The path as written to: links followed, whether it is there or not.
fs::path target_of(const std::string& path) {
    std::error_code ignored;
    const fs::path whole = fs::absolute(path, ignored);
    const fs::path target = fs::weakly_canonical(whole, ignored);
    return target.empty() ? whole.lexically_normal() : target;
}

}  // namespace

int write_stream(std::string_view text, std::FILE* stream) {
    errno = 0;
    const bool written = std::fwrite(text.data(), 1, text.size(), stream) == text.size();
    if (written && std::fflush(stream) == 0) return 0;
    return errno != 0 ? errno : EIO;
}

bool is_device(const std::string& path) {
    std::error_code ignored;
    const auto status = fs::status(path, ignored);
    return fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status);
}

void write_file(const std::string& path, std::string_view text) {
    std::error_code ignored;
    const fs::path resolved = fs::canonical(path, ignored);  // follow a link, do not replace it
    const std::string target = resolved.empty() ? path : resolved.string();
    if (fs::is_directory(fs::status(target, ignored))) fail_to_write(path, EISDIR);
    if (!is_device(target)) return replace_file(text, target, path);
    if (const int error = write_directly(text, target); error != 0) fail_to_write(path, error);
}

bool same_file(const std::string& a, const std::string& b) {
    std::error_code absent;
    return fs::equivalent(a, b, absent) || target_of(a) == target_of(b);
}

void fail_in(const std::string& file, std::string_view what) {
    throw input_error("{}: {}", printable(file), what);
}

std::string read_bytes(const std::string& path, std::uint64_t most) {
    const auto fail = [&path](std::string_view what) { fail_in(path, what); };
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
