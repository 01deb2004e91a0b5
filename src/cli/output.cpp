#include "cli/output.hpp"

#include "base/utf8.hpp"
#include "cli/interrupt.hpp"
#include "report/table.hpp"
#include "request/profile_arguments.hpp"

#include <moehub/error.hpp>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace moehub {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& path, int error) {
    throw InputError(
        fmt::format("{}: cannot be written: {}", printable(path), std::strerror(error)));
}

/// 0, or the error number.
int write_all(std::string_view text, std::FILE* stream) {
    errno = 0;
    const bool written = std::fwrite(text.data(), 1, text.size(), stream) == text.size();
    if (written && std::fflush(stream) == 0) return 0;
    return errno != 0 ? errno : EIO;
}

int write_file(std::string_view text, const std::string& path) {
    std::FILE* const file = std::fopen(path.c_str(), "wb");
    if (file == nullptr) return errno;
    const int error = write_all(text, file);
    const int close_error = std::fclose(file) == 0 ? 0 : errno;
    return error != 0 ? error : close_error;
}

/// Narrower ones are taken to be mistakes.
constexpr int kLeastColumns = 40;

int columns_of_stdout() {
    winsize window{};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 0)
        return std::max<int>(window.ws_col, kLeastColumns);
    const char* const columns = std::getenv("COLUMNS");
    if (columns == nullptr) return TextStyle::kNoLimit;
    int count = 0;
    const char* const end = columns + std::strlen(columns);
    const auto read = std::from_chars(columns, end, count);
    if (read.ec != std::errc() || read.ptr != end || count < 1) return TextStyle::kNoLimit;
    return std::clamp(count, kLeastColumns, TextStyle::kNoLimit);
}

void replace_file(std::string_view text, const std::string& target, const std::string& shown) {
    FileInWork file(shown);
    std::string temporary = target + ".XXXXXX";
    const int descriptor = mkstemp(temporary.data());
    if (descriptor < 0) fail(shown, errno);
    struct stat old {};
    const mode_t mask = umask(0);
    umask(mask);
    fchmod(descriptor, stat(target.c_str(), &old) == 0 ? old.st_mode & 07777 : 0666 & ~mask);
    close(descriptor);
    int error = write_file(text, temporary);
    if (error == 0 && std::rename(temporary.c_str(), target.c_str()) != 0) error = errno;
    if (error == 0) return file.is_written();
    std::remove(temporary.c_str());
    fail(shown, error);
}

bool is_device(const std::string& path) {
    std::error_code ignored;
    const auto status = fs::status(path, ignored);
    return fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status);
}

bool is_among(const std::vector<std::string>& files, const std::string& path) {
    return std::any_of(files.begin(), files.end(),
                       [&](const std::string& one) { return same_file(one, path); });
}

void require_access(const std::string& path) {
    std::error_code ignored;
    if (fs::is_directory(path, ignored)) fail(path, EISDIR);
    if (fs::exists(path, ignored)) {
        if (access(path.c_str(), W_OK) != 0) fail(path, errno);
        return;
    }
    const std::string folder = fs::path(path).parent_path().string();
    if (access(folder.empty() ? "." : folder.c_str(), W_OK) != 0) fail(path, errno);
}

}  // namespace

void put(std::string_view text, const std::string& path) {
    if (path.empty()) {
        const int error = write_all(text, stdout);
        if (error == EPIPE) throw std::system_error(error, std::generic_category());
        if (error != 0) fail("standard output", error);
        return;
    }
    std::error_code ignored;
    const fs::path resolved = fs::canonical(path, ignored);  // follow a link, do not replace it
    const std::string target = resolved.empty() ? path : resolved.string();
    const auto status = fs::status(target, ignored);
    if (fs::is_directory(status)) fail(path, EISDIR);
    if (fs::exists(status) && !fs::is_regular_file(status)) {
        // No file in work: whoever reads a pipe may never come, and Ctrl-C must end that wait.
        if (const int error = write_file(text, target); error != 0) fail(path, error);
        return;
    }
    replace_file(text, target, path);
}

TextStyle style_for(const std::string& path) {
    if (!path.empty()) return {};
    return {wants_colour(stdout), columns_of_stdout()};
}

OutputFile output_file(std::string_view option, const std::string& path) {
    return {option, path.empty() ? std::nullopt : std::optional(path)};
}

void require_writable(const std::vector<OutputFile>& files,
                      const std::vector<std::string>& inputs) {
    std::vector<std::string> replaced;
    for (const auto& [option, path] : files) {
        if (!path) continue;
        if (path->empty() || *path == "-")
            throw InputError(fmt::format("{}: found \"{}\", allowed: a file", option, *path));
        require_access(*path);
        if (is_device(*path)) continue;
        if (is_among(replaced, *path))
            throw InputError(
                fmt::format("{}: found the file of another output, allowed: its own", option));
        if (is_among(inputs, *path))
            throw InputError(fmt::format("{}: found {}, which is read, allowed: another file",
                                         option, printable(*path)));
        replaced.push_back(*path);
    }
}

}  // namespace moehub
