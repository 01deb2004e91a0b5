/// Rows that travel together: one transfer, readable where it goes once it has arrived, and not
/// before.
///
/// A channel is what a receiver waits for by itself: a chunk, a source, an expert. The programs of
/// all GPUs share a Mail.
#pragma once
#include "layers/exchange.hpp"

#include <unordered_map>
#include <vector>

namespace moehub::layers {

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
    /// The same by SMs that have the rows: a GEMM that ends, or a kernel that has read them and is
    /// told when its hub has taken them in (sending_kernel.hpp).
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
    /// … under a counter of the reader's own, where `rows_under` finds them.
    void fetch_under(GpuId reader, sim::CounterId arrived, const Load& load);
    Rows rows_under(GpuId reader, sim::CounterId arrived);

    /// `co_await mail.arrived(gpu, channel, 7);` goes on when seven messages are there.
    sim::Endpoint::Until arrived(GpuId gpu, std::size_t channel, std::int64_t messages);
    /// … when so many of what the GPU has sent are acknowledged.
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
    sim::CounterId arrived_;  ///< of the first channel; the others follow
    sim::CounterId acknowledged_;
    std::vector<std::int64_t> sent_;     ///< by GPU
    std::vector<std::uint64_t> posted_;  ///< bytes, by GPU: where the next message lies
    std::vector<std::unordered_map<std::uint64_t, sim::MessageId>> offers_;  ///< by GPU
};

/// `bytes` to all others in a channel, and from all others.
Process meet(Gpus& gpus, Mail& mail, GpuId gpu, std::size_t channel, Bytes bytes);

}  // namespace moehub::layers
