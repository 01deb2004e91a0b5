/// Rows that travel together: one transfer, readable where it goes once it has arrived, and not
/// before.
///
/// A channel is what a receiver waits for by itself: a chunk, a source, an expert. The programs of
/// all GPUs share a Mail.
#pragma once
#include "layers/exchange.hpp"

#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

namespace moehub::layers {

inline constexpr Bytes kTokenBytes = 4;   ///< bytes of a token's number in a message
inline constexpr Bytes kExpertBytes = 2;  ///< bytes of an expert's number in a message

/// Part of what a GPU offers; `count` 0: all of it.
struct RowRange {
    std::uint32_t first = 0;
    std::uint32_t count = 0;
};

class Mail {
  public:
    Mail(Gpus& gpus, const char* name, std::size_t channels);

    /// Stores `bytes` with the rows, which lie in `from`'s memory, into `to`'s channel.
    void send(GpuId from, GpuId to, std::size_t channel, Rows rows, Bytes bytes);
    /// A store by SMs that have the rows: a GEMM that ends, or a kernel that has read them and is
    /// told when its hub has taken them in (run_sending).
    void store(GpuId from, GpuId to, std::size_t channel, Rows rows, Bytes bytes);
    void store_told(GpuId from, GpuId to, std::size_t channel, Rows rows, Bytes bytes);
    void tell(GpuId from, GpuId to, std::size_t channel, std::vector<std::int64_t> counts,
              Bytes bytes);

    /// From now on the rows lie in `from`'s memory, under a key of its own, for others to fetch.
    void offer(GpuId from, std::uint64_t key, Rows rows);
    /// Loads `bytes` with some of those rows into the reader's channel. What is not there when the
    /// load comes for it is an error (std::logic_error).
    struct Load {
        GpuId from = 0;
        std::uint64_t key = 0;
        RowRange range = {};
        Bytes bytes = 0;
        bool rows = true;  ///< false: a piece of bytes whose rows come with another
    };
    void fetch(GpuId reader, std::size_t channel, const Load& load);
    /// Loads under a counter of the reader's own, where `rows_under` finds the rows.
    void fetch_under(GpuId reader, sim::CounterId arrived, const Load& load);
    Rows rows_under(GpuId reader, sim::CounterId arrived);

    /// `co_await mail.arrived(gpu, channel, 7);` goes on when seven messages are there.
    sim::Endpoint::Until arrived(GpuId gpu, std::size_t channel, std::int64_t messages);
    /// Goes on when so many of what the GPU has sent are acknowledged.
    sim::Endpoint::Until acknowledged(GpuId gpu, std::int64_t messages);
    std::int64_t sent(GpuId gpu) const { return sent_[gpu]; }  ///< messages

    /// What has come in the channel, by sender and in the order in which each sent it.
    std::vector<sim::Received> take_messages(GpuId gpu, std::size_t channel) {
        return messages_under(gpu, counter(channel));
    }
    Rows take(GpuId gpu, std::size_t channel) { return rows_under(gpu, counter(channel)); }

  private:
    void post(const sim::Transfer& wanted, GpuId poster);
    struct Letter {
        GpuId to = 0;
        std::size_t channel = 0;
        Bytes bytes = 0;
        bool from_sm = false;
        bool told = false;
    };
    void send_message(GpuId from, const Letter& letter, sim::Message message);
    std::vector<sim::Received> messages_under(GpuId gpu, sim::CounterId arrived);
    sim::MessageId offered(GpuId from, std::uint64_t key);
    sim::CounterId counter(std::size_t channel) const {
        return arrived_ + static_cast<sim::CounterId>(channel);
    }

    Gpus& gpus_;
    sim::CounterId arrived_;  ///< first channel's counter; the others follow
    sim::CounterId acknowledged_;
    std::vector<std::int64_t> sent_;     ///< by GPU
    std::vector<std::uint64_t> posted_;  ///< bytes, by GPU: where the next message lies
    std::vector<std::unordered_map<std::uint64_t, sim::MessageId>> offers_;  ///< by GPU
};

/// `bytes` to all others in a channel, and from all others.
Process meet(Gpus& gpus, Mail& mail, GpuId gpu, std::size_t channel, Bytes bytes);

/// Rows that lie with their token's GPU, by the expert that wants them, until that expert's GPU
/// pulls them: block by block, from as many GPUs as have rows of the block.
class PulledRows {
  public:
    /// `counts`: how many rows each GPU has for each expert; an expert's rows stand in the order of
    /// the GPUs that have them.
    PulledRows(MoeLayer& layer, const RowCounts& counts, const char* name);

    /// A GPU's rows, by the GPU that will pull them.
    void offer(GpuId gpu, const std::vector<Rows>& by_peer);
    /// Loads some of an expert's rows, of `bytes` each; returns how many loads that takes.
    struct Block {
        int expert = 0;
        RowRange rows = {};
        Bytes bytes = 0;
        sim::CounterId arrived = 0;  ///< reader's counter, one more for each load
    };
    std::int64_t pull(GpuId reader, const Block& block);
    /// When all loads of a block have arrived: its rows, in their order.
    Rows take(GpuId reader, sim::CounterId arrived) { return mail_.rows_under(reader, arrived); }

  private:
    std::uint64_t key_of(GpuId reader, int expert) const;

    MoeLayer& layer_;
    const RowCounts& counts_;
    Mail mail_;
};

/// A kernel that sends a GPU's rows away: some SMs read each row and store it where it belongs, as
/// fast as an SM does, and stay until the hub has taken in what they stored. A row that lies in L2
/// is read faster; what was evicted since the router read it comes from HBM.

/// The part of rows, written or read a while ago, that is not in L2 any more; `table`:
/// bytes of all of them.
double missed_in_l2(const Gpu& gpu, double table);

struct Sending {
    int sms = 1;
    std::int64_t rows = 0;  ///< in the order in which SMs take them
    double read = 0;        ///< bytes of a row, as it lies in memory
    double stored = 0;      ///< bytes of a row, as it is stored away
    double table = 0;       ///< bytes of all that rows are read from
};

/// `store(i)` stores row i: to others, or to the GPU itself; it returns how many of the stores it
/// posts tell when they are taken in (Transfer::told). Ends when all are.
Process run_sending(MoeLayer& layer, GpuId gpu, Sending sending,
                    std::function<int(std::int64_t)> store);

/// A message, and its rows as they are sent.
struct Outgoing {
    GpuId to = 0;
    std::size_t channel = 0;
    Rows rows;
    Bytes bytes = 0;
};

/// The system's `sending_sms` read the GPU's rows and store them, message after message; a message
/// goes with its last row. One without rows is a flag, which an SM stores beside the others.
Process send_messages(MoeLayer& layer, Mail& mail, GpuId gpu, std::vector<Outgoing> messages);

}  // namespace moehub::layers
