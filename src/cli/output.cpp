#include "base/files.hpp"
#include "cli/command.hpp"
#include "cli/interrupt.hpp"

#include <moehub/error.hpp>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace moehub {
namespace {

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

}  // namespace

void put(std::string_view text, const std::string& path) {
    if (path.empty()) {
        const int error = write_stream(text, stdout);
        if (error == EPIPE) throw std::system_error(error, std::generic_category());
        if (error != 0)
            throw InputError(
                fmt::format("standard output: cannot be written: {}", std::strerror(error)));
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

}  // namespace moehub
