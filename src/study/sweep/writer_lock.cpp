#include "study/sweep/writer_lock.hpp"

#include "base/utf8.hpp"

#include <moehub/error.hpp>

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace moehub {
namespace {

/// Whoever held the file before may have removed it between our opening and our locking.
bool still_there(int descriptor, const std::string& path) {
    struct stat held {};
    struct stat named {};
    return fstat(descriptor, &held) == 0 && stat(path.c_str(), &named) == 0 &&
           held.st_ino == named.st_ino && held.st_dev == named.st_dev;
}

}  // namespace

// Not the database itself: over NFS flock() and SQLite's own locks are in each other's way.
WriterLock::WriterLock(const std::string& file) : path_(file + "-lock") {
    constexpr int kTries = 100;
    for (int i = 0; i < kTries; ++i) {
        descriptor_ = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (descriptor_ < 0)
            throw InputError(
                fmt::format("{}: cannot be written: {}", printable(file), std::strerror(errno)));
        const bool locked = flock(descriptor_, LOCK_EX | LOCK_NB) == 0;
        if (locked && still_there(descriptor_, path_)) return;
        close(descriptor_);
        if (!locked && errno == EWOULDBLOCK) break;
    }
    throw InputError(fmt::format("{}: another moehub is writing to it", printable(file)));
}

WriterLock::~WriterLock() {
    unlink(path_.c_str());
    close(descriptor_);
}

}  // namespace moehub
