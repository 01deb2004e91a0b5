/// What a GPU sends where channels of SMs divide its tokens, and how it is passed on in other
/// nodes.
#pragma once
#include "layers/exchange.hpp"
#include "layers/mail.hpp"
#include "layers/rows.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace moehub::systems {

using namespace layers;

/// Rows by [channel][peer], in which the rows of a copy follow one another.
using Lanes = std::vector<std::vector<Rows>>;

/// Channels divide a GPU's tokens evenly: token t belongs to channel t · channels / tokens.
Lanes lanes_of(const MoeLayer& layer, GpuId gpu, int channels);

/// What the SMs of a channel need for each row that crosses between nodes or is sent on inside one
/// (ForwardedExchange). Those of a channel work side by side.
struct ForwardingSms {
    int per_channel = 1;
    int lanes = 1;          ///< 1: an SM serves all peers in turn; else warps are divided over them
    bool queues = false;    ///< rows pass queues, out of which SMs of the receiver copy them
    Ps send_token = 0;      ///< a token that a sender looks at
    Ps send_row = 0;        ///< a token that a sender has cross
    Ps forward_token = 0;   ///< a token that a lane looks at
    Ps forward_row = 0;     ///< a token that a lane sends on
    Ps receive_row = 0;     ///< a row taken out of a queue
    Ps contribute_row = 0;  ///< a result on its way to the GPU that adds up
    Ps collect_row = 0;     ///< a result that is added up in its node
    Ps collect_sum = 0;     ///< a node's sum of a token's results
    Ps return_row = 0;      ///< a node's sum that crosses home
    Ps add_row = 0;         ///< a node's sum that is added at home
};

/// DeepEP's normal kernels: pairs of SMs, warps divided over peers, queues.
ForwardingSms warps_through_queues(const layers::MoeLayer& layer);
/// SMs whose copy engines move whole rows to where they belong (HybridEP, DeepEP V2).
ForwardingSms copy_engines(const layers::MoeLayer& layer);

/// Copies of tokens that cross between nodes once for each node that needs them: over NICs to the
/// GPU of the sender's rail there, which sends a copy over NVLink to each GPU of its node that has
/// experts of the token. On the way back that GPU adds up what its node made of a token, and one
/// sum crosses home, where those of all nodes are added.
///
/// SMs form channels, which divide a GPU's tokens. A channel crosses in chunks of
/// `node_chunk_rows` tokens, of which a flag tells behind the rows; inside a node `chunk_rows` are
/// a message. What SMs need for each row is ForwardingSms.
class ForwardedExchange {
  public:
    ForwardedExchange(MoeLayer& layer, ForwardingSms (*sms)(const MoeLayer&))
        : layer_(layer), sms_(sms(layer)) {}

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
        std::int64_t copies = 0;  ///< copies that went to GPUs of the node
        std::int64_t back = 0;    ///< copies that came back
        Rows results;             ///< results of the copies that came back
    };
    struct Channel {
        std::int64_t copies = 0;    ///< copies expected here
        std::int64_t passing = 0;   ///< tokens expected here that are to be sent on
        std::int64_t sums = 0;      ///< sums expected back
        std::vector<Rows> crossed;  ///< chunks, as they came
        std::map<Chunk, Forwarded> chunks;
        Rows arrived;
        Rows returned;
    };
    struct Crossing {
        GpuId from = 0;
        GpuId to = 0;
        std::size_t channel = 0;
        Bytes bytes = 0;  ///< bytes of a copy
    };

    /// What comes to a channel, and where it goes; each copy takes an SM some time.
    struct Incoming {
        Mail& mail;
        const std::int64_t& copies;  ///< copies expected
        Rows& rows;
        Ps each;
    };

    Channel& channel(GpuId gpu, std::size_t number) { return state_[gpu][number]; }
    std::uint32_t node(GpuId gpu) const { return gpu / per_node_; }
    GpuId on_rail(GpuId gpu, std::uint32_t of_node) const {
        return static_cast<GpuId>(of_node * per_node_ + gpu % per_node_);
    }
    std::uint32_t first_token(GpuId home, std::size_t channel) const;
    Chunk chunk_of(std::uint32_t token, std::size_t channel) const;
    std::vector<Rows> cut_by_chunk(Rows rows, std::size_t channel) const;
    static void sort_by_token(Rows& rows);
    Rows rows_for_node(const std::vector<Rows>& by_peer, std::uint32_t of_node) const;
    int sms_of(GpuId gpu) const;  ///< SMs that its kernels hold

    Process send(GpuId gpu, std::size_t channel, std::vector<Rows> by_peer, Bytes bytes);
    Process cross(Crossing way, Rows rows, Ps each);
    Process gather(GpuId gpu, std::size_t channel);
    std::int64_t take_pieces(GpuId gpu, std::size_t channel, std::map<Chunk, Rows>& pieces);
    Process forward(GpuId gpu, std::size_t channel, int lane, Bytes bytes);
    Process contribute(GpuId gpu, std::size_t channel, std::vector<Rows> by_collector, Bytes bytes);
    Process collect(GpuId gpu, std::size_t channel, Bytes bytes);
    Process take_in(GpuId gpu, std::size_t channel, Incoming in);
    Ps reserve(const Crossing& way, Bytes bytes);

    MoeLayer& layer_;
    ForwardingSms sms_;
    std::uint32_t per_node_ = static_cast<std::uint32_t>(layer_.input.machine.gpus_per_node);
    std::uint32_t nodes_ = static_cast<std::uint32_t>(layer_.input.machine.nodes);
    int channels_ = std::max(1, layer_.system.communication_sms / sms_.per_channel);
    std::size_t many_ = static_cast<std::size_t>(channels_);  ///< channels
    /// By channel: rows between nodes, then flags behind them.
    Mail crossing_{layer_.gpus, "chunks from other nodes", 2 * many_};
    Mail inside_{layer_.gpus, "rows sent on", many_};
    Mail collected_{layer_.gpus, "results of a node", many_};
    Mail home_{layer_.gpus, "sums of nodes", many_};
    /// Chunks that have crossed, by channel.
    sim::CounterId ready_ = layer_.gpus.add_counters("chunks to send on", many_);
    /// Processes of a GPU's kernels.
    sim::CounterId done_ = layer_.gpus.add_counter("SMs of a forwarded exchange");
    RowTargets targets_{layer_};
    /// [gpu][channel].
    std::vector<std::vector<Channel>> state_ =
        std::vector<std::vector<Channel>>(layer_.gpus.count(), std::vector<Channel>(many_));
    /// [gpu][node]: until when its queue pair is busy.
    std::vector<std::vector<Ps>> paced_ =
        std::vector<std::vector<Ps>>(layer_.gpus.count(), std::vector<Ps>(nodes_));
};

}  // namespace moehub::systems
