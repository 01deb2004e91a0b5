#include "cli/output.hpp"

#include "base/files.hpp"
#include "base/utf8.hpp"
#include "cli/interrupt.hpp"

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
#include <unistd.h>

namespace moehub {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& path, int error) {
    throw InputError(
        fmt::format("{}: cannot be written: {}", printable(path), std::strerror(error)));
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

bool is_among(const std::vector<std::string>& files, const std::string& path) {
    return std::any_of(files.begin(), files.end(),
                       [&](const std::string& one) { return same_file(one, path); });
}

std::vector<std::string> folders_of(const std::vector<std::string>& paths) {
    std::vector<std::string> folders;
    std::error_code ignored;
    for (const std::string& path : paths)
        if (fs::is_directory(path, ignored)) folders.push_back(path);
    return folders;
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
        const int error = write_stream(text, stdout);
        if (error == EPIPE) throw std::system_error(error, std::generic_category());
        if (error != 0) fail("standard output", error);
        return;
    }
    // Whoever reads a pipe may never come, and Ctrl-C must end that wait: no file in work.
    if (is_device(path)) return write_file(path, text);
    FileInWork file(path);
    write_file(path, text);
    file.is_written();
}

TextStyle style_for(const std::string& path) {
    if (!path.empty()) return {};
    return {wants_colour(stdout), columns_of_stdout()};
}

void require_writable(const std::vector<OutputFile>& files,
                      const std::vector<std::string>& inputs) {
    std::vector<std::string> replaced;
    for (const auto& [option, path, goes_on] : files) {
        if (path.empty() || path == "-")
            throw InputError(fmt::format("{}: found \"{}\", allowed: a file", option, path));
        if (!(goes_on && fs::exists(path))) require_access(path);
        if (is_device(path)) continue;
        if (is_among(replaced, path))
            throw InputError(
                fmt::format("{}: found the file of another output, allowed: its own", option));
        if (is_among(inputs, path))
            throw InputError(fmt::format("{}: found {}, which is read, allowed: another file",
                                         option, printable(path)));
        if (is_among(folders_of(inputs), fs::absolute(path).parent_path().string()))
            throw InputError(
                fmt::format("{}: found {}, in a folder that is read, allowed: a file elsewhere",
                            option, printable(path)));
        replaced.push_back(path);
    }
}

}  // namespace moehub
