#include "cli/interrupt.hpp"

#include "base/utf8.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <string_view>

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

[[noreturn]] void end_now() {
    if (isatty(STDERR_FILENO) != 0) say("\r\x1b[K");
    say("moehub: interrupted; ");
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
    if (isatty(STDERR_FILENO) != 0) say("\r\x1b[K");
    say("moehub: interrupted; " + words + "\n");
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

}  // namespace moehub
