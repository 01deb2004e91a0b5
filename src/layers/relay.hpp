/// Tokens between nodes: each crosses once into every node where it has experts, to the GPU of its
/// home's rail, which sends it on there and collects the node's results; their sum crosses back
/// once. SMs of the GPUs in between read and store every token that passes.
#pragma once
#include "layers/mail.hpp"
#include "layers/multimem_layer.hpp"

namespace moehub::layers {

class Relay {
  public:
    explicit Relay(MultimemLayer& rows);

    /// A GPU's own token to all other nodes where it has experts; returns how many stores that
    /// takes, each of which tells when the hub has taken it in.
    int cross(GpuId home, const std::vector<Rows>& by_node);
    std::int64_t crossings(GpuId home) const;  ///< of all its tokens
    /// What has crossed to a GPU since the last time, as it is to send it on.
    sim::Endpoint::Until crossed(GpuId gpu, std::int64_t tokens) {
        return out_.arrived(gpu, 0, tokens);
    }
    std::vector<Rows> take(GpuId gpu);

    /// The sum of a token's results in a node goes home.
    void send_home(GpuId from, std::uint32_t token);
    sim::Endpoint::Until came_home(GpuId home, std::int64_t sums) {
        return home_.arrived(home, 0, sums);
    }
    /// Adds up what came home since the last time.
    struct Homecoming {
        std::int64_t messages = 0;
        std::int64_t sums = 0;
    };
    Homecoming take_home(GpuId home);

    /// The GPU that collects a token's results in the node of `gpu`.
    GpuId collector(GpuId gpu, std::uint32_t token) const;
    bool several_nodes() const { return rows_.layer.input.machine.nodes > 1; }

  private:
    GpuId on_rail_of(GpuId home, std::uint32_t node) const;

    MultimemLayer& rows_;
    Mail out_;
    Mail home_;
};

}  // namespace moehub::layers
