/// One writer of a file at a time, on this machine and where file locks reach.
#pragma once
#include <string>

namespace moehub {

/// Holds FILE-lock, which a process that dies leaves behind unlocked, from construction on.
class WriterLock {
  public:
    /// Throws InputError when another process holds it, or it cannot be made.
    explicit WriterLock(const std::string& file);
    ~WriterLock();
    WriterLock(const WriterLock&) = delete;
    WriterLock& operator=(const WriterLock&) = delete;

  private:
    std::string path_;
    int descriptor_ = -1;
};

}  // namespace moehub
