/// Rows pushed in chunks through queues between pairs of SMs, as DeepEP's normal kernels do: half
/// of the kernel's SMs read rows and store them into queues on their peers, the other half empty
/// their own GPU's queues. A channel is one such pair, and has a share of the tokens.
///
/// A sending SM divides its warps evenly over its peers, so that each peer's lane goes by itself:
///     tokens · push_token + rows · (push_row + bytes · GPUs / push),
/// however little the other lanes have to do (Gpu::exchange). On the way out all tokens of the
/// channel are looked at, on the way back only rows that go. A receiving SM copies rows into their
/// buffer, or adds up the copies of a token.
#pragma once
#include "layers/mail.hpp"
#include "systems/moe/lanes.hpp"

namespace moehub::systems {

class ChunkedExchange {
  public:
    /// `sums`: receivers add up the copies of each of their GPU's tokens.
    ChunkedExchange(MoeLayer& layer, const char* name, bool sums);

    int channels() const { return channels_; }
    /// What a GPU tells another of its lanes: copies by channel; and what follows when it heard so.
    std::vector<std::int64_t> announcement(GpuId to, const Lanes& lanes) const;
    void expect(GpuId gpu, const std::vector<std::int64_t>& announced);
    /// What a GPU sent will come back to it.
    void expect_return(GpuId from, const Lanes& lanes);
    /// The kernel of one GPU: holds its SMs until everything is sent and received. `bytes` is what
    /// a copy takes on the wire; what stays on the GPU passes the SMs, too.
    Process run(GpuId gpu, Lanes lanes, Bytes bytes);
    /// After run: by channel, from all peers in turn.
    std::vector<Rows> received(GpuId gpu);

  private:
    struct Expected {
        std::int64_t messages = 0;
        std::int64_t copies = 0;
    };

    Process send(GpuId gpu, std::size_t channel, std::size_t peer, Rows rows, Bytes bytes);
    Process receive(GpuId gpu, std::size_t channel, Bytes bytes);
    double tokens_of(GpuId gpu, std::size_t channel) const;

    MoeLayer& layer_;
    bool sums_;
    int channels_;
    Mail mail_;
    std::vector<std::vector<Expected>> expected_;  ///< [gpu][channel]
    sim::CounterId done_;                          ///< lanes and receivers of a GPU
};

}  // namespace moehub::systems
