// How requests reach an egress's channels through the RPM.
#include "sim/egress.hpp"
#include "sim/fabric.hpp"

#include <algorithm>

namespace moehub::sim {

Ps Egress::run_rpm(Fabric& fabric, Ps until) {
    for (;;) {
        const First first = choose_first(fabric, until);
        const Ps start = first.choice.start;
        Ps waits = kNever;
        for (const Uplink& uplink : uplinks_) waits = std::min(waits, uplink.waits);
        if (std::min(start, waits) >= until) return std::min(start, waits);
        if (waits <= start) {
            for (Uplink& uplink : uplinks_) {
                if (uplink.waits == waits) take_lines(fabric, uplink, waits);
            }
        } else {
            depart(fabric, *first.uplink, first.choice);
            const std::uint32_t channel = first.choice.channel;
            if (channel != 0) take_line(fabric, *first.uplink, channel, start);
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
    const std::uint64_t planes = fill(fabric, partition, transfer.ready);
    for (Uplink& uplink : uplinks_) {
        if (((planes >> (uplink.number % 64)) & 1) == 0) continue;
        take_line(fabric, uplink, channel_of(uplink, transfer.dst), transfer.ready);
    }
}

/// Lets stores into the partition while there is room; returns for which uplinks, as a bitmap.
std::uint64_t Egress::fill(Fabric& fabric, Partition& partition, Ps now) {
    const Layout& layout = fabric.layout();
    std::uint64_t planes = 0;
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
        // A store that ends its row is flushed with it; a source column, which stands alone, might
        // still be joined by others and waits for the timer.
        line.whole = static_cast<std::uint32_t>(
            transfer.target.low_priority && !nic ? wire.payload : bytes);
        line.plane = static_cast<std::uint8_t>(plane);
        line.low_priority = transfer.target.low_priority;
        line.since = line.last = std::max(now, transfer.ready);
        // A warp's stores to a line come together, so they have merged when the line may go.
        line.bytes = static_cast<std::uint32_t>(bytes);
        partition.lines.store(line, rpm_stats_);
        const Bytes store = fabric.machine().moe_hub.store_bytes;
        const std::int64_t merged = (bytes + store - 1) / store - line.packets;
        rpm_stats_.stores += std::max<std::int64_t>(0, merged);
        rpm_stats_.merged += std::max<std::int64_t>(0, merged);
        planes |= std::uint64_t{1} << (plane % 64);  // more than 64 links: only a hint
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
        const std::uint64_t planes = fill(fabric, partition, now);
        for (Uplink& other : uplinks_) {
            if (((planes >> (other.number % 64)) & 1) == 0) continue;
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
