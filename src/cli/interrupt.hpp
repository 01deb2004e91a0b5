/// Ctrl-C while a search runs: the first asks it to end with the best so far, the second ends the
/// program as usual.
#pragma once
#include <csignal>
#include <stop_token>
#include <thread>

namespace moehub {

/// Watches from construction to destruction, one at a time; then Ctrl-C does again what it did
/// before. Where SIGINT was ignored it stays so.
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
