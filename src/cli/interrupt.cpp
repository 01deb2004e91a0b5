#include "cli/interrupt.hpp"

#include "base/files.hpp"
#include "base/utf8.hpp"
#include "cli/command.hpp"

#include <moehub/error.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <system_error>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace moehub {
namespace {

// A signal handler reaches nothing but what is static, and may call little more than write(): what
// it would say stands ready.
std::atomic<bool> interrupted{false};  // while an Interrupt watches
std::atomic<int> files_in_work{0};
std::atomic<bool> ends_after_file{false};
std::array<char, 8192> written_names{};
std::atomic<std::size_t> written_size{0};
struct sigaction at_second {};
static_assert(std::atomic<bool>::is_always_lock_free &&
              std::atomic<std::size_t>::is_always_lock_free);

void say(std::string_view text) {
    [[maybe_unused]] const auto ignored = ::write(STDERR_FILENO, text.data(), text.size());
}

/// Over a progress bar, if there is one.
void say_interrupted() {
    if (isatty(STDERR_FILENO) != 0) say("\r\x1b[K");
    say("moehub: interrupted; ");
}

[[noreturn]] void end_now() {
    say_interrupted();
    const std::size_t size = written_size.load();
    say(size == 0 ? "nothing was written" : "wrote ");
    say({written_names.data(), size});
    say("\n");
    _exit(kInterruptedCode);
}

extern "C" void end_by_signal(int) {
    if (files_in_work.load() == 0) end_now();
    ends_after_file.store(true);
}

extern "C" void note_interrupt(int) {
    sigaction(SIGINT, &at_second, nullptr);
    interrupted.store(true);
}

void add_written(const std::string& path) {
    const std::size_t size = written_size.load();
    const std::string name = (size > 0 ? ", " : "") + printable(path);
    if (size + name.size() > written_names.size()) return;
    std::copy(name.begin(), name.end(), written_names.begin() + static_cast<std::ptrdiff_t>(size));
    written_size.store(size + name.size());
}

constexpr auto kLook = std::chrono::milliseconds(20);

void watch(const std::stop_token& end, std::stop_source& source) {
    std::mutex mutex;
    std::condition_variable_any ended;
    std::unique_lock lock(mutex);
    while (!end.stop_requested() && !interrupted.load())
        ended.wait_for(lock, end, kLook, [] { return false; });
    if (interrupted.load()) source.request_stop();
}

bool is_ignored() {
    struct sigaction now {};
    sigaction(SIGINT, nullptr, &now);
    return now.sa_handler == SIG_IGN;
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

}  // namespace

void end_on_interrupt() {
    if (is_ignored()) return;
    struct sigaction end {};
    end.sa_handler = end_by_signal;
    end.sa_flags = SA_RESTART;
    sigaction(SIGINT, &end, nullptr);
}

std::string what_was_written() {
    const std::size_t size = written_size.load();
    if (size == 0) return "nothing was written";
    return "wrote " + std::string(written_names.data(), size);
}

void leave(const std::string& words) {
    say_interrupted();
    say(words + "\n");
    _exit(kInterruptedCode);
}

FileInWork::FileInWork(std::string path) : path_(std::move(path)) {
    ++files_in_work;
}

FileInWork::~FileInWork() {
    if (written_) add_written(path_);
    if (--files_in_work == 0 && ends_after_file.load()) end_now();
}

Interrupt::Interrupt() {
    interrupted.store(false);
    sigaction(SIGINT, nullptr, &before_);
    if (is_ignored()) return;
    at_second = before_;
    struct sigaction first {};
    first.sa_handler = note_interrupt;
    first.sa_flags = SA_RESTART;
    sigaction(SIGINT, &first, nullptr);
    watcher_ = std::jthread([this](const std::stop_token& end) { watch(end, source_); });
}

Interrupt::~Interrupt() {
    sigaction(SIGINT, &before_, nullptr);
}

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
