#include "cli/interrupt.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>

namespace moehub {
namespace {

// A signal handler reaches nothing but what is static, and may not call request_stop().
std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free);

extern "C" void note_interrupt(int) {
    interrupted.store(true);
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

}  // namespace

Interrupt::Interrupt() {
    interrupted.store(false);
    sigaction(SIGINT, nullptr, &before_);
    if (before_.sa_handler == SIG_IGN) return;
    struct sigaction first {};
    first.sa_handler = note_interrupt;
    first.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
    sigaction(SIGINT, &first, nullptr);
    watcher_ = std::jthread([this](const std::stop_token& end) { watch(end, source_); });
}

Interrupt::~Interrupt() {
    sigaction(SIGINT, &before_, nullptr);
}

}  // namespace moehub
