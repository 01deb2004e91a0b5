/// Messages between the processes of one run. mpi/ has one over MPI, in a module of its own that is
/// loaded where there are several; tests have one in memory.
#pragma once
#include <optional>
#include <string>

namespace moehub {

struct RankMessage {
    int from = 0;
    std::string bytes;
};

/// Used by one thread at a time, always the same.
class Transport {
  public:
    virtual ~Transport() = default;
    virtual int rank() const = 0;
    virtual int size() const = 0;
    /// Sends without waiting for the receiver, who may be gone.
    virtual void send(int to, std::string bytes) = 0;
    /// Receives without waiting. Messages of one sender come in the order they were sent.
    virtual std::optional<RankMessage> receive() = 0;
    /// The last call: with `all` every rank is there to say goodbye, otherwise some are lost.
    virtual void finish(bool all) = 0;
};

}  // namespace moehub
