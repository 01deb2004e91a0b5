#include "sim/fabric.hpp"
#include "sim/hub/egress.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace moehub::sim {

PacketManager::PacketManager(const Uplinks& uplinks) {
    for (const Uplinks::Uplink& uplink : uplinks.all())
        links_.emplace_back().channels.resize(uplink.channels.size());
}

Ps PacketManager::run(Fabric& fabric, Uplinks& uplinks, Ps until) {
    // Credits may have come.
    for (Uplinks::Uplink& uplink : uplinks.all()) uplinks.choose_again(uplink);
    for (;;) {
        const Uplinks::First first = uplinks.choose_first(fabric, until);
        const Ps start = first.choice.start;
        if (std::min(start, waits_) >= until) return std::min(start, waits_);
        if (waits_ <= start) {
            take_timed_out(fabric, uplinks);
        } else {
            uplinks.depart(fabric, *first.uplink, first.choice);
            const std::uint32_t channel = first.choice.channel;
            if (channel != 0) take_line(fabric, uplinks, *first.uplink, channel, start);
        }
    }
}

PacketManager::Partition& PacketManager::partition_of(Fabric& fabric, const Uplinks& uplinks,
                                                      GpuId peer) {
    if (partitions_.empty()) partitions_.resize(fabric.topology().gpus);
    if (partitions_[peer]) return *partitions_[peer];
    const MoeHubSpec& spec = fabric.machine().moe_hub;
    partitions_[peer] = std::make_unique<Partition>(peer, spec.rpm_entries, spec.rpm_timer);
    for (const Uplinks::Uplink& uplink : uplinks.all()) {
        if (!fabric.topology().connects(uplink.number, uplinks.gpu(), peer)) continue;
        Link& link = links_[uplink.number];
        link.channels[Uplinks::channel_of(uplink, peer)].partitions.push_back(
            partitions_[peer].get());
    }
    return *partitions_[peer];
}

void PacketManager::post(Fabric& fabric, Uplinks& uplinks, TransferId id) {
    const Transfer& transfer = fabric.transfer(id);
    Partition& partition = partition_of(fabric, uplinks, transfer.dst);
    if (partition.head != kNoTransfer) {
        fabric.transfer(partition.tail).next = id;
        partition.tail = id;
        return;  // what stands before it found no room
    }
    partition.head = partition.tail = id;
    open_head(fabric, partition);
    fill_and_take(fabric, uplinks, partition, transfer.ready);
}

void PacketManager::open_head(Fabric& fabric, Partition& partition) const {
    const Transfer& transfer = fabric.transfer(partition.head);
    partition.second = transfer.next;
    if (partition.second != kNoTransfer) fabric.prefetch(partition.second);
    partition.ready = transfer.ready;
    partition.left = transfer.bytes;
    partition.number = fabric.first_line(transfer, fabric.link());
    RpmLine& line = partition.next;
    line.transfer = partition.head;
    line.index = 0;
    line.row_id = transfer.target.allocate ? transfer.target.row : 0xffffffff;
    line.low_priority = transfer.target.low_priority;
    line.kind = transfer.kind;
    line.multicast = transfer.multicast();
    line.more =
        static_cast<std::uint16_t>(line.multicast ? fabric.multicast_flits(transfer.group) : 0);
    line.plane = static_cast<std::uint8_t>(
        fabric.topology().uplink(transfer.src, transfer.dst, partition.number));
    shape_next(fabric, partition);
}

void PacketManager::shape_next(const Fabric& fabric, Partition& partition) const {
    RpmLine& line = partition.next;
    const Wire& wire = fabric.wire_of_uplink(line.plane);
    const bool nic = fabric.topology().is_nic(line.plane);
    const Bytes bytes = std::min(partition.left, fabric.train_bytes(wire));
    // An SM stores to a line at its own rate: the line may go when the last store has merged.
    line.bytes = static_cast<std::uint32_t>(bytes);
    line.packets = nic ? std::uint16_t{1} : wire.packets(bytes);
    // A store that ends its row is flushed with it; a source column, which stands alone, might
    // still be joined by others and waits for the timer.
    line.whole = static_cast<std::uint32_t>(line.low_priority && !nic ? wire.payload : bytes);
    const Bytes store = fabric.machine().moe_hub.store_bytes;
    const Bytes first_line = std::min(bytes, wire.payload);
    const double stores = static_cast<double>(std::max<Bytes>(0, first_line - store));
    partition.open = std::llround(stores / fabric.machine().gpu.kernels.row_store * 1e12);
    // A NIC makes packets of its own of whatever it gets: nothing the RPM could claim.
    partition.merged = nic ? 0 : std::max<std::int64_t>(0, (bytes - 1) / store + 1 - line.packets);
}

/// The next line entered: on to the one behind it, of the next transfer if need be.
void PacketManager::advance_head(Fabric& fabric, Partition& partition) const {
    RpmLine& line = partition.next;
    partition.left -= line.bytes;
    if (partition.left == 0) {
        if (fabric.transfer(partition.head).told) fabric.tell_taken_in(partition.head, line.last);
        const bool known = partition.second != kNoTransfer;
        partition.head = known ? partition.second : fabric.transfer(partition.head).next;
        if (partition.head != kNoTransfer) open_head(fabric, partition);
        return;
    }
    ++line.index;
    line.plane =
        static_cast<std::uint8_t>(fabric.topology().uplink_after(line.plane, ++partition.number));
    if (partition.left < line.bytes) shape_next(fabric, partition);  // only the last differs
}

/// Lets stores into the partition while there is room; returns for which uplinks, as a bitmap.
std::uint64_t PacketManager::fill(Fabric& fabric, Partition& partition, Ps now) {
    std::uint64_t planes = 0;
    while (partition.head != kNoTransfer && partition.lines.fits()) {
        RpmLine& line = partition.next;
        line.since = std::max(now, partition.ready);
        line.last = line.since + partition.open;
        partition.lines.add(line, stats_);
        stats_.stores += partition.merged;
        stats_.merged += partition.merged;
        planes |= std::uint64_t{1} << (line.plane % 64);
        advance_head(fabric, partition);
    }
    return planes;
}

/// Fills the partition, and stages lines on those channels to the peer that had none.
void PacketManager::fill_and_take(Fabric& fabric, Uplinks& uplinks, Partition& partition, Ps now) {
    std::uint64_t planes = fill(fabric, partition, now);
    for (; planes != 0; planes &= planes - 1) {
        // A bit stands for every 64th uplink: where there are more, only a hint.
        auto number = static_cast<std::size_t>(std::countr_zero(planes));
        for (; number < uplinks.size(); number += 64) {
            Uplinks::Uplink& uplink = uplinks[number];
            take_line(fabric, uplinks, uplink, Uplinks::channel_of(uplink, partition.peer), now);
        }
    }
}

/// Stages the next line of the channel, if it is empty, from the peer whose turn it is.
void PacketManager::take_line(Fabric& fabric, Uplinks& uplinks, Uplinks::Uplink& uplink,
                              std::uint32_t number, Ps now) {
    if (!uplinks.empty(uplink, number)) return;
    Link& link = links_[uplink.number];
    Peers& channel = link.channels[number];
    const auto plane = static_cast<std::uint8_t>(uplink.number);
    const std::size_t peers = channel.partitions.size();
    std::size_t peer = channel.turn;
    for (std::size_t i = 0; i < peers; ++i, ++peer) {
        if (peer >= peers) peer = 0;
        Partition& partition = *channel.partitions[peer];
        const auto choice = partition.lines.choose(plane, now);
        if (!choice) continue;
        if (choice->from > now) {
            link.waits = std::min(link.waits, choice->from);
            waits_ = std::min(waits_, choice->from);
            continue;
        }
        stage_line(uplinks, uplink, partition.lines.take(choice->slot, stats_), partition.peer,
                   now);
        channel.turn = peer + 1;
        return fill_and_take(fabric, uplinks, partition, now);
    }
}

/// The line knows all that its train needs: its transfer may have left the processor's cache.
void PacketManager::stage_line(Uplinks& uplinks, Uplinks::Uplink& uplink, const RpmLine& line,
                               GpuId peer, Ps now) const {
    const std::uint32_t number = Uplinks::channel_of(uplink, peer);
    Train& train = uplinks.stage(uplink, number, now);
    train.transfer = line.transfer;
    train.index = line.index;
    train.bytes = line.bytes;
    train.packets = line.packets;
    train.kind = line.kind;
    train.phase = Phase::whole;
    train.src = uplinks.gpu();
    train.dst = peer;
    train.plane = line.plane;
    train.multicast = line.multicast;
    train.gather = false;
    train.merge = false;
    train.sum = kNoSum;
    train.answers = 1;
    train.flits = uplink.wire->flits(line.kind, line.bytes, line.packets, line.more);
    uplink.channels[number].packets += train.packets;
}

/// Lines whose time has run out go as they are.
void PacketManager::take_timed_out(Fabric& fabric, Uplinks& uplinks) {
    const Ps now = waits_;
    for (Uplinks::Uplink& uplink : uplinks.all()) {
        if (links_[uplink.number].waits != now) continue;
        links_[uplink.number].waits = kNever;
        for (std::uint32_t number = 1; number <= uplink.requests; ++number)
            take_line(fabric, uplinks, uplink, number, now);
    }
    waits_ = kNever;
    for (const Link& link : links_) waits_ = std::min(waits_, link.waits);
}

}  // namespace moehub::sim
