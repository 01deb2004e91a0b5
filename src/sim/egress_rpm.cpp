// How requests reach an egress's channels through the RPM.
#include "sim/egress.hpp"
#include "sim/fabric.hpp"

#include <algorithm>

namespace moehub::sim {

Ps Egress::run_rpm(Fabric& fabric, Ps until) {
    for (;;) {
        Choice best;
        Uplink* chosen = nullptr;
        Ps waits = kNever;
        for (Uplink& uplink : uplinks_) {
            waits = std::min(waits, uplink.waits);
            const Choice choice = choose(fabric, uplink, until);
            if (choice.start >= best.start) continue;
            best = choice;
            chosen = &uplink;
        }
        if (std::min(best.start, waits) >= until) return std::min(best.start, waits);
        if (waits <= best.start) {
            for (Uplink& uplink : uplinks_) {
                if (uplink.waits == waits) take_lines(fabric, uplink, waits);
            }
        } else {
            depart(fabric, *chosen, best);
            if (best.channel != 0) take_line(fabric, *chosen, best.channel, best.start);
        }
    }
}

Egress::Partition& Egress::partition_of(Fabric& fabric, GpuId peer) {
    const auto found = partitions_.find(peer);
    if (found != partitions_.end()) return found->second;
    const MoeHubSpec& spec = fabric.machine().moe_hub;
    // A train enters when its first packet fits, so in row grain there is room for one more.
    const Bytes train = fabric.unit_bytes(fabric.link()) / fabric.link().payload;
    const auto entries = static_cast<std::int32_t>(spec.rpm_entries + train - 1);
    Partition& partition =
        partitions_.emplace(peer, Partition{RpmPartition(entries, spec.rpm_timer)}).first->second;
    for (Uplink& uplink : uplinks_) {
        if (!fabric.layout().connects(uplink.number, gpu_, peer)) continue;
        uplink.channels[channel_of(uplink, peer)].partitions.push_back(&partition);
    }
    return partition;
}

void Egress::enqueue_rpm(Fabric& fabric, TransferId id) {
    const Transfer& transfer = fabric.transfer(id);
    Partition& partition = partition_of(fabric, transfer.dst);
    if (partition.head == kNoTransfer) {
        partition.head = id;
    } else {
        fabric.transfer(partition.tail).next = id;
    }
    partition.tail = id;
    const std::uint32_t planes = fill(fabric, partition, transfer.ready);
    for (Uplink& uplink : uplinks_) {
        if (((planes >> uplink.number) & 1) == 0) continue;
        take_line(fabric, uplink, channel_of(uplink, transfer.dst), transfer.ready);
    }
}

/// Lets stores into the partition while there is room; returns for which uplinks, as a bitmap.
std::uint32_t Egress::fill(Fabric& fabric, Partition& partition, Ps now) {
    const Layout& layout = fabric.layout();
    std::uint32_t planes = 0;
    while (partition.head != kNoTransfer) {
        const Transfer& transfer = fabric.transfer(partition.head);
        const std::uint64_t first = fabric.first_line(transfer, fabric.link());
        const std::uint32_t plane =
            layout.uplink(transfer.src, transfer.dst, first + partition.next);
        const Wire& wire = fabric.wire_of_uplink(plane);
        const Bytes size = fabric.unit_bytes(wire);
        const Bytes left = transfer.bytes - partition.next * size;
        const Bytes bytes = std::min(left, size);
        const bool nic = layout.is_nic(plane);
        RpmLine line;
        line.transfer = partition.head;
        line.index = partition.next;
        line.row_id = transfer.target.allocate ? transfer.target.row : 0xffffffff;
        line.packets = nic ? std::uint16_t{1} : wire.packets(bytes);
        if (!partition.lines.fits(line.packets)) break;
        // Only a line of its own may still grow: what ends a train goes with it.
        line.whole = static_cast<std::uint32_t>(line.packets > 1 || nic ? bytes : wire.payload);
        line.plane = static_cast<std::uint8_t>(plane);
        line.low_priority = transfer.target.low_priority;
        line.since = line.last = std::max(now, transfer.ready);
        const Bytes store = line.packets > 1 || nic ? bytes : fabric.machine().moe_hub.store_bytes;
        for (Bytes stored = 0; stored < bytes; stored += store) {
            line.bytes = static_cast<std::uint32_t>(std::min(store, bytes - stored));
            partition.lines.store(line, rpm_stats_);
        }
        planes |= 1u << plane;
        if (left <= size) {
            partition.head = transfer.next;
            partition.next = 0;
        } else {
            ++partition.next;
        }
    }
    return planes;
}

/// Stages the next line of the channel, if it is empty, from the peer whose turn it is.
void Egress::take_line(Fabric& fabric, Uplink& uplink, std::uint32_t number, Ps now) {
    Channel& channel = uplink.channels[number];
    if (!channel.units.empty()) return;
    const auto plane = static_cast<std::uint8_t>(uplink.number);
    const std::size_t peers = channel.partitions.size();
    for (std::size_t i = 0; i < peers; ++i) {
        const std::size_t peer = (channel.turn + i) % peers;
        Partition& partition = *channel.partitions[peer];
        const auto choice = partition.lines.choose(plane, now);
        if (!choice) continue;
        if (choice->from > now) {
            uplink.waits = std::min(uplink.waits, choice->from);
            continue;
        }
        const RpmLine line = partition.lines.take(choice->slot, rpm_stats_);
        Unit& unit = stage(uplink, number, now);
        fabric.cut(unit, line.transfer, *uplink.wire, line.index);
        unit.plane = plane;
        channel.packets += unit.packets;
        channel.turn = peer + 1;
        const GpuId dst = unit.dst;
        const std::uint32_t planes = fill(fabric, partition, now);
        for (Uplink& other : uplinks_) {
            if (((planes >> other.number) & 1) == 0) continue;
            take_line(fabric, other, channel_of(other, dst), now);
        }
        return;
    }
}

/// A line's time has run out.
void Egress::take_lines(Fabric& fabric, Uplink& uplink, Ps now) {
    uplink.waits = kNever;
    for (std::uint32_t number = 1; number <= uplink.requests; ++number) {
        take_line(fabric, uplink, number, now);
    }
}

}  // namespace moehub::sim
