#include "sim/hub/aau.hpp"

#include <algorithm>
#include <stdexcept>

namespace moehub::sim {

Aau::Aau(const AauSpec& spec) : spec_(spec), rat_(spec.rat), bank_free_(rat_.banks(), 0) {}

RegionId Aau::add_region(const RegionSpec& spec) {
    const RegionId id = memory_.add_region(spec);
    apt_.emplace_back();
    return id;
}

Aau::Located Aau::locate(RegionId region, std::uint32_t row_id, Bytes offset, std::uint32_t packets,
                         Ps now) {
    if (packets == 0 || offset < 0 || offset >= memory_.spec(region).row_bytes)
        throw std::logic_error("AAU: a packet that lies outside its row");
    Located located;
    const auto held = rat_.find(region, row_id);
    const bool must_read = !held && (spec_.in_memory || apt_[region].spilled);
    const auto restored = must_read ? rat_.take_spilled(region, row_id) : std::nullopt;
    located.first = !held && !restored;
    located.local_row = held ? *held : restored ? *restored : apt_[region].next;
    // May throw, for a first packet only: before anything has changed.
    located.address =
        memory_.address(region, located.local_row) + static_cast<std::uint64_t>(offset);

    located.ready = occupy_bank(region, row_id, packets, now);
    located.passed = located.ready;
    const std::uint64_t row = row_key(region, row_id);
    if (held) {
        if (located.ready < last_read_) located.ready = read_until(row, located.ready);
    } else if (must_read) {
        located.passed = free_read(located.ready);
        located.ready = read(row, located.passed);
    }
    if (!spec_.in_memory) located.passed = located.ready;

    stats_.lookups += packets;
    stats_.hits += held ? packets : packets - 1;
    if (restored) ++stats_.restores;
    if (located.first) allocate(region, located);
    if (!held) enter(region, row_id, located.local_row);
    return located;
}

void Aau::allocate(RegionId region, Located& located) {
    ++apt_[region].next;
    ++stats_.allocated;
    if (spec_.in_memory) stats_.spill_bytes += spec_.entry;
    const Page page = memory_.page(region, located.local_row);
    if (page.first_row != located.local_row) return;
    located.new_page = true;
    located.page_begin = page.begin;
    located.page_first_row = page.first_row;
    located.page_rows = page.rows;
}

void Aau::enter(RegionId region, std::uint32_t row_id, std::uint32_t local_row) {
    const Rat::Inserted inserted = rat_.insert(region, row_id, local_row);
    if (!inserted.evicted) return;
    apt_[inserted.victim_region].spilled = true;
    ++stats_.evictions;
    if (!spec_.in_memory) stats_.spill_bytes += spec_.entry;
}

/// Returns when the last packet has been looked up. A train's packets came one after the other, so
/// that the bank, if it was free, is through with all but the last when that one comes.
Ps Aau::occupy_bank(RegionId region, std::uint32_t row_id, std::uint32_t packets, Ps now) {
    Ps& free_at = bank_free_[rat_.bank(region, row_id)];
    const Ps first = now - spec_.lookup * (packets - 1);
    const Ps start = std::max(first, free_at);
    stats_.bank_wait += start - first;
    free_at = start + spec_.lookup * packets;
    return free_at;
}

/// Reads last equally long, so that they end in the order in which they began.
Ps Aau::free_read(Ps time) {
    if (!spec_.in_memory) return time;
    if (read_slots_.empty()) read_slots_.resize(static_cast<std::size_t>(spec_.reads));
    Ps& slot = read_slots_[next_slot_++ % read_slots_.size()];
    const Ps start = std::max(time, slot);
    slot = start + spec_.restore;
    return start;
}

Ps Aau::read(std::uint64_t row, Ps start) {
    stats_.spill_bytes += spec_.entry;
    const Ps end = start + spec_.restore;
    if (reads_.size() >= prune_at_) {
        std::erase_if(reads_, [&](const auto& entry) { return entry.second <= start; });
        prune_at_ = 2 * reads_.size() + 64;
    }
    reads_[row] = end;
    last_read_ = std::max(last_read_, end);
    return end;
}

Ps Aau::read_until(std::uint64_t row, Ps time) {
    const auto found = reads_.find(row);
    return found == reads_.end() ? time : std::max(time, found->second);
}

std::uint32_t ReplicaTable::add(std::span<const std::uint32_t> endpoints) {
    if (endpoints.empty()) throw std::logic_error("replicas: a destination without endpoints");
    const auto number = static_cast<std::uint32_t>(destinations_.size());
    Destination& destination = destinations_.emplace_back();
    destination.turn = (std::size_t{number} + origin_) % endpoints.size();
    for (const std::uint32_t endpoint : endpoints) {
        const auto [found, added] = index_.try_emplace(endpoint, endpoints_.size());
        if (added) endpoints_.push_back({.number = endpoint});
        destination.endpoints.push_back(found->second);
    }
    return number;
}

std::uint32_t ReplicaTable::choose(std::uint32_t number) {
    Destination& destination = destinations_[number];
    const std::size_t index =
        policy_ == ReplicaPolicy::least_loaded ? least_loaded(destination) : destination.turn;
    destination.turn = index + 1 == destination.endpoints.size() ? 0 : index + 1;
    Endpoint& endpoint = endpoints_[destination.endpoints[index]];
    ++endpoint.sent;
    return endpoint.number;
}

std::size_t ReplicaTable::least_loaded(const Destination& destination) const {
    const std::size_t count = destination.endpoints.size();
    const auto load = [&](std::size_t index) {
        return endpoints_[destination.endpoints[index]].sent;
    };
    std::size_t best = destination.turn;
    for (std::size_t i = 1; i < count; ++i) {
        const std::size_t index = (destination.turn + i) % count;
        if (load(index) < load(best)) best = index;
    }
    return best;
}

std::int64_t ReplicaTable::sent(std::uint32_t endpoint) const {
    const auto found = index_.find(endpoint);
    return found == index_.end() ? 0 : endpoints_[found->second].sent;
}

}  // namespace moehub::sim
