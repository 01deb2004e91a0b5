/// Ctrl-C: what it ends, and what is said then.
#pragma once
#include <csignal>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>

namespace moehub {

inline constexpr int kInterruptedCode = 130;  ///< as shells count a program that SIGINT ended

/// From here on Ctrl-C ends the program at once: the progress line goes, one line says what was
/// written, the exit code is 130. Where SIGINT was ignored it stays so.
void end_on_interrupt();

/// "wrote a.json, b.html" or "nothing was written".
std::string what_was_written();

/// Ends the program now with one line, over a progress bar if there is one: "interrupted; " and
/// these words.
[[noreturn]] void leave(const std::string& words);

/// A file while it is written: Ctrl-C waits until it is whole, and names it from then on.
class FileInWork {
  public:
    explicit FileInWork(std::string path);
    ~FileInWork();
    FileInWork(const FileInWork&) = delete;
    FileInWork& operator=(const FileInWork&) = delete;

    void is_written() { written_ = true; }

  private:
    std::string path_;
    bool written_ = false;
};

/// Ends a command that came to its end although it was interrupted; main() says what was written.
class Interrupted : public std::runtime_error {
  public:
    Interrupted() : std::runtime_error("interrupted; " + what_was_written()) {}
};

/// Watches from construction to destruction, one at a time: the first Ctrl-C asks what runs to end
/// with the best so far, the second ends the program. Then Ctrl-C does again what it did before.
/// Where SIGINT was ignored it stays so.
class Interrupt {
  public:
    Interrupt();
    ~Interrupt();
    Interrupt(const Interrupt&) = delete;
    Interrupt& operator=(const Interrupt&) = delete;

    std::stop_token token() const { return source_.get_token(); }
    bool happened() const { return source_.stop_requested(); }

  private:
    std::stop_source source_;
    struct sigaction before_ {};
    std::jthread watcher_;
};

}  // namespace moehub
