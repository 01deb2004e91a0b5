/// What the one-sided all-to-all's parts share: its blocks (one_sided.cpp), and the SMs that pass
/// rows on between nodes (one_sided_relay.cpp).
///
/// With `once_per_node`, between nodes, a token crosses once into each node where it has experts,
/// to the GPU of its home's rail. SMs there (`communication_sms`) put one copy into each GPU that
/// needs it, as a home's blocks do; later they get the results, add them up and put one sum home.
#pragma once
#include "layers/mail.hpp"
#include "layers/rows.hpp"
#include "systems/systems.hpp"

namespace moehub::systems::one_sided {

/// The tokens that blocks of one SM work on together, and what they send to each peer.
struct Group {
    std::uint32_t sm = 0;
    GpuId home = 0;
    std::vector<Rows> rows;           ///< by peer
    std::vector<std::uint64_t> keys;  ///< by peer: under which it will offer the results
};

struct OneSided {
    bool same_node(GpuId a, GpuId b) const { return a / reach == b / reach; }
    /// Where a home's blocks put rows for a peer.
    GpuId way(GpuId home, GpuId peer) const {
        return same_node(home, peer) ? peer
                                     : static_cast<GpuId>(peer / reach * reach + home % reach);
    }

    MoeLayer& layer;
    /// GPUs that put and get from one another: all, or a node's.
    std::uint32_t reach = static_cast<std::uint32_t>(layer.input.machine.gpus_per_node);
    /// SMs that pass rows on; 0: in one node.
    std::uint32_t relay_sms = layer.input.machine.nodes > 1
                                  ? static_cast<std::uint32_t>(layer.system.communication_sms)
                                  : 0;
    /// The other SMs.
    std::uint32_t block_sms = static_cast<std::uint32_t>(layer.input.machine.gpu.sms) - relay_sms;
    Mail put{layer.gpus, "rows", 1};
    Mail got{layer.gpus, "results", static_cast<std::size_t>(layer.input.machine.gpu.sms)};
    Mail flags{layer.gpus, "flags", 2};  ///< channel 0: rows are there; 1: results can be got
    /// 1 when the shared experts are done.
    sim::CounterId shared = layer.gpus.add_counter("shared experts");
    /// Finished groups of blocks.
    sim::CounterId blocks = layer.gpus.add_counter("blocks of a one-sided kernel");
    /// [gpu][peer]: messages with rows so far.
    std::vector<std::vector<std::uint32_t>> put_to = std::vector<std::vector<std::uint32_t>>(
        layer.gpus.count(), std::vector<std::uint32_t>(layer.gpus.count()));
    /// [gpu][sm]: loads so far.
    std::vector<std::vector<std::int64_t>> asked = std::vector<std::vector<std::int64_t>>(
        layer.gpus.count(), std::vector<std::int64_t>(block_sms + relay_sms));

    // Between nodes.
    RowTargets targets{layer};
    /// By relaying SM: tokens; then how many messages there were.
    Mail crossing{layer.gpus, "tokens of other nodes", relay_sms + 1};
    Mail sums{layer.gpus, "sums of other nodes", 1};  ///< sums that come home
    sim::CounterId passed_on = layer.gpus.add_counter("messages passed on");
    /// SMs that have brought all sums home.
    sim::CounterId relays = layer.gpus.add_counter("SMs that brought sums home");
    /// [gpu][relaying SM].
    std::vector<std::vector<std::vector<Group>>> passed =
        std::vector<std::vector<std::vector<Group>>>(layer.gpus.count(),
                                                     std::vector<std::vector<Group>>(relay_sms));
};

/// Blocks put a group's rows where they belong, and get its results.
Process put_group(OneSided& o, GpuId gpu, Group& group);
Process get_group(OneSided& o, GpuId gpu, Group& group);

// All do nothing in one node.
/// A home's block has its NIC send a group's copies to the GPU that passes them on.
Process cross(OneSided& o, GpuId home, GpuId to, const Group& group, Bytes bytes);
/// The SMs that pass on what comes to a GPU; they end with the run.
void spawn_relays(OneSided& o, GpuId gpu);
/// Behind a home's last copy; until all that came to this GPU is passed on.
Process pass_on_rest(OneSided& o, GpuId gpu);
/// The SMs that bring sums of what a GPU passed on home (`relays` counts those that are done),
void spawn_bringers(OneSided& o, GpuId gpu);
/// where those of its own tokens are added up.
Process add_sums(OneSided& o, GpuId gpu);

}  // namespace moehub::systems::one_sided
