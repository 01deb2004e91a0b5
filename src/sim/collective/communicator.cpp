#include "sim/collective/communicator.hpp"

#include <stdexcept>

namespace moehub::sim {

Communicator::Communicator(Fabric& fabric, const char* name, bool meets)
    : Communicator(fabric, fabric.all_gpus(), name, meets) {}

Communicator::Communicator(Fabric& fabric, std::vector<GpuId> members, const char* name, bool meets)
    : fabric_(fabric), members_(std::move(members)), meets_(meets) {
    group_ = fabric.groups().add(members_);
    if (!std::is_sorted(members_.begin(), members_.end()))
        throw std::logic_error("a communicator's members are in ascending order");
    for (const GpuId gpu : members_) {
        Member& member = states_.emplace_back();
        member.counters = endpoint(gpu).add_counters(name, 2 * kCounts);
        const std::uint32_t ways = rings() > 1 ? 3 * rings() + kTreeWays : 1;
        member.rings = endpoint(gpu).add_counters(name, ways);
        member.ring_parts.resize(ways);
    }
}

std::uint32_t Communicator::rank(GpuId gpu) const {
    const auto found = std::lower_bound(members_.begin(), members_.end(), gpu);
    return static_cast<std::uint32_t>(found - members_.begin());
}

/// Rings of a call: in the whole machine one on each rail, so that all NICs work.
std::uint32_t Communicator::rings() const {
    const Topology& topology = fabric_.topology();
    return whole_machine() && topology.nodes > 1 ? topology.gpus_per_node : 1;
}

void Communicator::begin(GpuId gpu) {
    Member& member = states_[rank(gpu)];
    member.set = 1 - member.set;
    ++member.calls;
    for (std::uint32_t i = 0; i < kCounts; ++i)
        member.before[member.set][i] += std::exchange(member.many[member.set][i], 0);
}

CounterId Communicator::counter(GpuId member, Count count, GpuId caller) const {
    return states_[rank(member)].counters + states_[rank(caller)].set * kCounts + count;
}

void Communicator::expect(GpuId gpu, Count count, std::int64_t many) {
    Member& member = states_[rank(gpu)];
    std::int64_t& most = member.many[member.set][count];
    most = std::max(most, many);
}

Endpoint::Until Communicator::until(GpuId gpu, Count count, std::int64_t many) {
    expect(gpu, count, many);
    const Member& member = states_[rank(gpu)];
    return endpoint(gpu).until(counter(gpu, count, gpu), member.before[member.set][count] + many);
}

CounterId Communicator::ring_counter(GpuId gpu, std::uint32_t ring) const {
    return states_[rank(gpu)].rings + ring;
}

std::int64_t& Communicator::ring_parts(GpuId gpu, std::uint32_t ring) {
    return states_[rank(gpu)].ring_parts[ring];
}

}  // namespace moehub::sim
