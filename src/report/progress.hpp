/// A progress bar on a terminal; silent everywhere else.
#pragma once
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>

namespace moehub {

/// Draws on stderr while it is a terminal, a few times a second, with the time that has passed and
/// what is left of it, and erases itself when it goes. Draws before the first update, too: work
/// that is not done in pieces shows that it goes on.
class Progress {
  public:
    /// `stream` is drawn on only when it is a terminal.
    explicit Progress(std::string label, std::FILE* stream = stderr);
    ~Progress();
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    void update(std::size_t done, std::size_t total);
    /// With pieces a second; `before` were done when the clock started.
    void update_rate(std::size_t before, std::size_t done, std::size_t total);
    /// Where work is not counted in pieces: the share done, 0 to 1.
    void update_share(double done);

  private:
    using Clock = std::chrono::steady_clock;
    struct State {
        double fraction = 0;
        std::string words;
        double left = -1;  ///< seconds from `at` on; below 0: not known
        Clock::time_point at;
    };
    double seconds() const;
    void set(State state);
    void keep_drawing(const std::stop_token& end);
    void draw(const State& state);

    std::string label_;
    std::FILE* stream_;
    Clock::time_point begin_;
    std::mutex mutex_;
    std::condition_variable_any ended_;
    State state_;
    bool drawn_ = false;
    std::jthread artist_;  ///< where somebody watches
};

}  // namespace moehub
