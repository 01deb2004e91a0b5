/// Copies of tokens that cross between nodes once for each node that needs them: over NICs to the
/// GPU of the sender's rail there, which sends a copy over NVLink to each GPU of its node that has
/// experts of the token. On the way back that GPU adds up what its node made of a token, and one
/// sum crosses home, where those of all nodes are added.
///
/// SMs form channels, which divide a GPU's tokens. A channel crosses in chunks of
/// `node_chunk_rows` tokens, of which a flag tells behind the rows; inside a node `chunk_rows` are
/// a message. What SMs need for each row is ForwardingSms.
#pragma once
#include "layers/mail.hpp"
#include "systems/moe/forwarding_sms.hpp"
#include "systems/moe/lanes.hpp"

#include <map>
#include <utility>

namespace moehub::systems {

class ForwardedExchange {
  public:
    ForwardedExchange(MoeLayer& layer, ForwardingSms (*sms)(const MoeLayer&));

    int channels() const { return channels_; }
    /// What a GPU tells another: copies that will come to it by channel, and, on its rail, tokens
    /// that it is to send on; and what follows when it heard so.
    std::vector<std::int64_t> announcement(GpuId from, GpuId to, const Lanes& lanes) const;
    void expect(GpuId gpu, const std::vector<std::int64_t>& announced);
    /// A sum of what a GPU sent comes back from every node.
    void expect_return(GpuId from, const Lanes& lanes);

    /// The kernels of one GPU: they hold its SMs until everything is sent and received. `bytes` is
    /// what a copy takes on the wire.
    Process dispatch(GpuId gpu, Lanes lanes, Bytes bytes);
    std::vector<Rows> dispatched(GpuId gpu);  ///< by channel
    Process combine(GpuId gpu, std::vector<Rows> results, Bytes bytes);
    std::vector<Rows> combined(GpuId gpu);  ///< by channel

  private:
    /// Tokens of a home node that cross together.
    using Chunk = std::pair<std::uint32_t, std::int64_t>;  ///< home's node, number in its channel
    struct Forwarded {
        std::int64_t copies = 0;  ///< that went to GPUs of the node,
        std::int64_t back = 0;    ///< that came back,
        Rows results;             ///< with these
    };
    struct Channel {
        std::int64_t copies = 0;    ///< expected here,
        std::int64_t passing = 0;   ///< tokens expected here that are to be sent on,
        std::int64_t sums = 0;      ///< expected back
        std::vector<Rows> crossed;  ///< chunks, as they came
        std::map<Chunk, Forwarded> chunks;
        Rows arrived;
        Rows returned;
    };
    struct Crossing {
        GpuId from = 0;
        GpuId to = 0;
        std::size_t channel = 0;
        Bytes bytes = 0;  ///< of a copy
    };

    Channel& channel(GpuId gpu, std::size_t number) { return state_[gpu][number]; }
    std::uint32_t node(GpuId gpu) const { return gpu / per_node_; }
    GpuId on_rail(GpuId gpu, std::uint32_t of_node) const {
        return static_cast<GpuId>(of_node * per_node_ + gpu % per_node_);
    }
    GpuId target(const CarriedRow& row) const {
        return targets_[std::size_t{row.token} * layer_.top_k() + row.choice];
    }
    std::uint32_t first_token(GpuId home, std::size_t channel) const;
    Chunk chunk_of(std::uint32_t token, std::size_t channel) const;
    std::vector<Rows> cut_by_chunk(Rows rows, std::size_t channel) const;
    Rows rows_for_node(const std::vector<Rows>& by_peer, std::uint32_t of_node) const;
    int sms_of(GpuId gpu) const;  ///< that its kernels hold

    Process send(GpuId gpu, std::size_t channel, std::vector<Rows> by_peer, Bytes bytes);
    Process cross(Crossing way, Rows rows, Ps each);
    Process gather(GpuId gpu, std::size_t channel);
    std::int64_t take_pieces(GpuId gpu, std::size_t channel, std::map<Chunk, Rows>& pieces);
    Process forward(GpuId gpu, std::size_t channel, int lane, Bytes bytes);
    Process receive(GpuId gpu, std::size_t channel);
    Process contribute(GpuId gpu, std::size_t channel, std::vector<Rows> by_collector, Bytes bytes);
    Process collect(GpuId gpu, std::size_t channel, Bytes bytes);
    Process add(GpuId gpu, std::size_t channel);
    Ps reserve(const Crossing& way, Bytes bytes);

    MoeLayer& layer_;
    std::uint32_t per_node_;
    std::uint32_t nodes_;
    ForwardingSms sms_;
    int channels_;
    Mail crossing_;  ///< by channel: rows between nodes, then flags behind them
    Mail inside_;
    Mail collected_;
    Mail home_;
    sim::CounterId ready_;                     ///< chunks that have crossed, by channel
    sim::CounterId done_;                      ///< processes of a GPU's kernels
    std::vector<GpuId> targets_;               ///< [token][choice]
    std::vector<std::vector<Channel>> state_;  ///< [gpu][channel]
    std::vector<std::vector<Ps>> paced_;       ///< [gpu][node]: until when its queue pair is busy
};

}  // namespace moehub::systems
