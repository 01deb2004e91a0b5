/// Rows that travel together: one transfer, readable where it goes once it has arrived.
///
/// A channel is what a receiver waits for by itself: a chunk, a source, an expert. The programs of
/// all GPUs share a Mail.
#pragma once
#include "systems/exchange.hpp"

#include <utility>
#include <vector>

namespace moehub::systems {

class Mail {
  public:
    Mail(Layer& layer, const char* name, std::size_t channels);

    /// Stores `bytes` with the rows into `to`'s channel. To itself: there at once, nothing moves.
    void send(GpuId from, GpuId to, std::size_t channel, Buffer rows, Bytes bytes);
    /// Loads them out of `from`'s memory into the reader's own channel.
    void fetch(GpuId reader, GpuId from, std::size_t channel, Buffer rows, Bytes bytes);

    /// `co_await mail.arrived(gpu, channel, 7);` goes on when seven messages are there.
    sim::Endpoint::Until arrived(GpuId gpu, std::size_t channel, std::int64_t messages);
    /// … when so many of what the GPU has sent to others are acknowledged.
    sim::Endpoint::Until acknowledged(GpuId gpu, std::int64_t messages);
    std::int64_t sent(GpuId gpu) const { return sent_[gpu]; }  ///< to others

    /// What has come in the channel, by sender.
    Buffer take(GpuId gpu, std::size_t channel);

  private:
    using Inbox = std::vector<std::pair<GpuId, Buffer>>;

    void post(const sim::Transfer& wanted, GpuId poster, std::size_t channel);
    sim::CounterId counter(std::size_t channel) const {
        return arrived_ + static_cast<sim::CounterId>(channel);
    }

    Layer& layer_;
    sim::CounterId arrived_ = 0;  ///< of the first channel; the others follow
    sim::CounterId acknowledged_ = 0;
    std::vector<std::vector<Inbox>> inbox_;  ///< [gpu][channel]
    std::vector<std::int64_t> sent_;         ///< by GPU
    std::vector<std::uint64_t> posted_;      ///< bytes, by GPU: where the next message lies
};

/// `bytes` to all others in a channel, and from all others.
Process meet(Layer& layer, Mail& mail, GpuId gpu, std::size_t channel, Bytes bytes);

}  // namespace moehub::systems
