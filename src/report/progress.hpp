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

/// How far some work is.
struct Work {
    double share = 0;        ///< part of the work that is done, 0 to 1
    std::string words = {};  ///< "3/12"
    double before = 0;       ///< share that was done when the work began
};
/// So many pieces of so many.
Work pieces_done(std::size_t done, std::size_t total, std::size_t before = 0);

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

    void update(const Work& work);

  private:
    using Clock = std::chrono::steady_clock;
    struct State {
        double fraction = 0;
        std::string words;
        double left = -1;  ///< seconds from `at` on; below 0: not known
        Clock::time_point at;
    };
    double seconds() const;
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
