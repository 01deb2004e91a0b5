// Messages over MPI, in a module of its own: the program loads it where mpirun started it, and runs
// without MPI everywhere else.
#include "study/sweep/transport.hpp"

#include <chrono>
#include <list>
#include <memory>

#include <mpi.h>

namespace {

class MpiTransport : public moehub::Transport {
  public:
    MpiTransport() {
        int provided = 0;
        MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
        // A rank that is gone must not take the others along.
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
        MPI_Comm_size(MPI_COMM_WORLD, &size_);
    }

    int rank() const override { return rank_; }
    int size() const override { return size_; }

    void send(int to, std::string bytes) override {
        forget_sent();
        Sent& sent = sent_.emplace_back();
        sent.bytes = std::move(bytes);
        const int code = MPI_Isend(sent.bytes.data(), static_cast<int>(sent.bytes.size()), MPI_BYTE,
                                   to, 0, MPI_COMM_WORLD, &sent.request);
        if (code != MPI_SUCCESS) sent_.pop_back();
    }

    std::optional<moehub::RankMessage> receive() override {
        forget_sent();
        int there = 0;
        MPI_Status status;
        if (MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &there, &status) != MPI_SUCCESS ||
            there == 0)
            return std::nullopt;
        int size = 0;
        MPI_Get_count(&status, MPI_BYTE, &size);
        moehub::RankMessage message{status.MPI_SOURCE,
                                    std::string(static_cast<std::size_t>(size), '\0')};
        if (MPI_Recv(message.bytes.data(), size, MPI_BYTE, status.MPI_SOURCE, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE) != MPI_SUCCESS)
            return std::nullopt;
        return message;
    }

    // Finalising waits for everyone, for ever where someone is lost.
    void finish(bool all) override {
        if (!all) return send_what_goes();
        for (Sent& sent : sent_) MPI_Wait(&sent.request, MPI_STATUS_IGNORE);
        sent_.clear();
        MPI_Finalize();
    }

  private:
    struct Sent {
        std::string bytes;
        MPI_Request request = MPI_REQUEST_NULL;
    };

    void send_what_goes() {
        constexpr auto kLongest = std::chrono::seconds(1);
        const auto end = std::chrono::steady_clock::now() + kLongest;
        while (!sent_.empty() && std::chrono::steady_clock::now() < end) forget_sent();
    }

    void forget_sent() {
        for (auto sent = sent_.begin(); sent != sent_.end();) {
            int done = 0;
            const int code = MPI_Test(&sent->request, &done, MPI_STATUS_IGNORE);
            sent = done != 0 || code != MPI_SUCCESS ? sent_.erase(sent) : std::next(sent);
        }
    }

    int rank_ = 0;
    int size_ = 1;
    std::list<Sent> sent_;  // MPI reads the bytes until a message has left
};

}  // namespace

/// Owned by the caller, who calls it once.
extern "C" moehub::Transport* moehub_transport() {
    return std::make_unique<MpiTransport>().release();
}
