#include "sim/switch/network_sums.hpp"

#include "sim/fabric.hpp"

#include <algorithm>
#include <set>

namespace moehub::sim {

NetworkSums::Key NetworkSums::key_of(const Fabric& fabric, const Train& train) const {
    const Transfer& transfer = fabric.transfer(train.transfer);
    const Bytes offset = train.index * fabric.train_bytes(fabric.wire_of_uplink(train.plane));
    return {transfer.group, transfer.address + static_cast<std::uint64_t>(offset)};
}

/// Of a leaf: its GPUs in the group; of a spine: leaves with some.
std::size_t NetworkSums::parts(const Fabric& fabric, GroupId group) {
    const auto [found, first] = parts_.try_emplace(group, 0);
    if (!first) return found->second;
    const Topology& topology = fabric.topology();
    std::set<SwitchId> leaves;
    for (const GpuId member : fabric.groups().members(group)) {
        leaves.insert(topology.leaf(member));
        if (topology.leaf(member) == number_) ++found->second;
    }
    if (topology.tier(number_) == Topology::Tier::spine) found->second = leaves.size();
    return found->second;
}

std::span<const Event> NetworkSums::take(Fabric& fabric, const Event& event) {
    out_.clear();
    const Train& train = event.train;
    fabric.release(train.hold, event.time, train.flits);
    const Key key = key_of(fabric, train);
    std::vector<Train>& came = waiting_[key];
    deepest_ = std::max(deepest_, static_cast<std::int64_t>(waiting_.size()));
    if (train.kind == Kind::atomic) came.push_back(train);
    if (train.kind == Kind::atomic && came.size() < parts(fabric, key.first)) return out_;
    const bool spine = fabric.topology().tier(number_) == Topology::Tier::spine;
    const bool all = spine || came.size() == fabric.groups().members(key.first).size();
    if (train.kind == Kind::atomic && !all) {
        out_.push_back({came.front(), event.time, 0});
        out_.back().train.hold = kNoPool;
        return out_;
    }
    for (const Train& part : came) answer(fabric, part, event.time);
    waiting_.erase(key);
    return out_;
}

void NetworkSums::answer(const Fabric& fabric, const Train& part, Ps now) {
    Train& sum = out_.emplace_back(Event{part, now, 0}).train;
    sum.kind = Kind::data;
    sum.hold = kNoPool;
    sum.src = part.dst;
    sum.dst = part.src;
    sum.flits = fabric.wire_of_uplink(part.plane).flits(Kind::data, part.bytes, part.packets, 0);
}

/// A part goes to the spine that its address is added up at; a sum to whoever sent a part.
std::uint32_t NetworkSums::port(const Fabric& fabric, const Train& train) const {
    const Topology& topology = fabric.topology();
    if (train.kind == Kind::data) return topology.port_towards(number_, train);
    const Key key = key_of(fabric, train);
    const auto lines = static_cast<std::uint64_t>(train.bytes);
    return topology.leaf_nodes +
           static_cast<std::uint32_t>((key.first + key.second / lines) % topology.spines);
}

}  // namespace moehub::sim
