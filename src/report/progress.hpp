/// A progress bar on a terminal; silent everywhere else.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <string>

namespace moehub {

/// Draws on stderr while it is a terminal, a few times a second, and erases itself when it goes.
class Progress {
  public:
    /// `stream` is drawn on only when it is a terminal.
    explicit Progress(std::string label, std::FILE* stream = stderr);
    ~Progress();
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    void update(std::size_t done, std::size_t total);
    /// With pieces a second and the time left; `before` were done when the clock started.
    void update_rate(std::size_t before, std::size_t done, std::size_t total);
    /// Where work is not counted in pieces: the share done, 0 to 1, and the time it took.
    void update_share(double done);

  private:
    using Clock = std::chrono::steady_clock;
    void draw(double fraction, const std::string& words);

    std::string label_;
    std::FILE* stream_;  ///< null: draw nothing
    bool drawn_ = false;
    Clock::time_point begin_;
    Clock::time_point next_;
};

}  // namespace moehub
