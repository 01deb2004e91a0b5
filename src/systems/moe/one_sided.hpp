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
    explicit OneSided(MoeLayer& of);

    bool same_node(GpuId a, GpuId b) const { return a / reach == b / reach; }
    /// Where a home's blocks put rows for a peer.
    GpuId way(GpuId home, GpuId peer) const {
        return same_node(home, peer) ? peer
                                     : static_cast<GpuId>(peer / reach * reach + home % reach);
    }

    MoeLayer& layer;
    std::uint32_t reach;      ///< GPUs that put and get from one another: all, or a node's
    std::uint32_t relay_sms;  ///< that pass rows on; 0: in one node
    std::uint32_t block_sms;  ///< the others
    Mail put;
    Mail got;
    Mail flags;             ///< channel 0: rows are there; 1: results can be got
    sim::CounterId shared;  ///< 1 when the shared experts are done
    sim::CounterId blocks;  ///< finished groups of blocks
    std::vector<std::vector<std::uint32_t>> put_to;  ///< [gpu][peer]: messages with rows so far
    std::vector<std::vector<std::int64_t>> asked;    ///< [gpu][sm]: loads so far

    // Between nodes.
    RowTargets targets;
    Mail crossing;             ///< by relaying SM: tokens; then how many messages there were
    Mail sums;                 ///< that come home
    sim::CounterId passed_on;  ///< messages
    sim::CounterId relays;     ///< SMs that have brought all sums home
    std::vector<std::vector<std::vector<Group>>> passed;  ///< [gpu][relaying SM]
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
