// What every link carried, for results.
#include "sim/fabric.hpp"
#include "sim/recorder.hpp"

namespace moehub::sim {
namespace {

/// Who is at the far end of an uplink: its switch, its leaf, or, in a mesh, a peer.
ComponentId behind_uplink(const Topology& topology, std::uint32_t gpu, std::uint32_t uplink) {
    if (topology.is_nic(uplink)) return topology.of_switch(topology.leaf(gpu));
    if (!topology.mesh) {
        return topology.of_switch(topology.node_switch(topology.node(gpu), uplink));
    }
    const std::uint32_t rail = uplink < topology.rail(gpu) ? uplink : uplink + 1;
    return topology.gpu(topology.node(gpu) * topology.gpus_per_node + rail);
}

LinkUse use_of(const Busy& busy, const Wire& wire, std::string from, std::string to) {
    LinkUse use{std::move(from), std::move(to), busy.flits() * wire.flit, 0, busy.width(), {}};
    for (const Ps bin : busy.bins()) {
        use.bins.push_back(bin);
        use.busy += bin;
    }
    while (!use.bins.empty() && use.bins.back() == 0) use.bins.pop_back();
    return use;
}

}  // namespace

std::vector<LinkUse> Fabric::links() const {
    std::vector<LinkUse> list;
    for (std::uint32_t gpu = 0; gpu < topology_.gpus; ++gpu) {
        for (const Uplinks::Uplink& uplink : egresses_[gpu].uplinks().all()) {
            const bool alone = topology_.mesh && topology_.gpus_per_node == 1;
            if (alone && !topology_.is_nic(uplink.number)) continue;  // leads to nobody
            list.push_back(
                use_of(uplink.busy, *uplink.wire, name_of(topology_, topology_.gpu(gpu)),
                       name_of(topology_, behind_uplink(topology_, gpu, uplink.number))));
        }
    }
    for (SwitchId number = 0; number < switches_.size(); ++number) {
        const std::string from = name_of(topology_, topology_.of_switch(number));
        const std::span<const Port> ports = switches_[number].ports();
        for (std::uint32_t port = 0; port < ports.size(); ++port) {
            list.push_back(use_of(ports[port].busy(), wire_of_port(number, port), from,
                                  name_of(topology_, topology_.behind_port(number, port))));
        }
    }
    return list;
}

GatherStats Fabric::gather_stats() const {
    GatherStats sum;
    for (const Switch& one : switches_) {
        for (const Port& port : one.ports()) {
            if (port.gather() == nullptr) continue;
            const GatherStats& stats = port.gather()->stats();
            sum.answers += stats.answers;
            sum.gathered += stats.gathered;
            sum.evicted += stats.evicted;
            sum.deepest = std::max(sum.deepest, stats.deepest);
        }
    }
    return sum;
}

MergeStats Fabric::merge_stats() const {
    MergeStats sum;
    for (const Switch& one : switches_) {
        for (std::size_t port = 0; port < one.ports().size(); ++port) {
            if (const MergeUnit* unit = one.merge_unit(port)) sum.add(unit->stats());
        }
    }
    return sum;
}

GroupSyncStats Fabric::group_sync_stats() const {
    GroupSyncStats sum;
    for (const Switch& one : switches_) {
        if (one.group_sync() == nullptr) continue;
        sum.meetings += one.group_sync()->stats().meetings;
        sum.deepest = std::max(sum.deepest, one.group_sync()->stats().deepest);
    }
    return sum;
}

}  // namespace moehub::sim
