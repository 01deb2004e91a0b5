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

Aau::Placed Aau::place(RegionId region, std::uint32_t row_id, Bytes offset, std::uint32_t packets,
                       Ps now) {
    if (packets == 0 || offset < 0 || offset >= memory_.spec(region).row_bytes) {
        throw std::logic_error("AAU: a packet that lies outside its row");
    }
    Placed placed;
    const auto held = rat_.find(region, row_id);
    const bool must_read = !held && apt_[region].spilled;
    const auto restored = must_read ? rat_.take_spilled(region, row_id) : std::nullopt;
    placed.first = !held && !restored;
    placed.local_row = held ? *held : restored ? *restored : apt_[region].next;
    // May throw, for a first packet only: before anything has changed.
    placed.address = memory_.address(region, placed.local_row) + static_cast<std::uint64_t>(offset);

    placed.ready = occupy_bank(region, row_id, packets, now);
    const std::uint64_t row = row_key(region, row_id);
    if (held) {
        if (placed.ready < last_read_) placed.ready = read_until(row, placed.ready);
    } else if (must_read) {
        placed.ready = read(row, placed.ready);
    }

    stats_.lookups += packets;
    stats_.hits += held ? packets : packets - 1;
    if (restored) ++stats_.restores;
    if (placed.first) allocate(region, placed);
    if (!held) enter(region, row_id, placed.local_row);
    return placed;
}

void Aau::allocate(RegionId region, Placed& placed) {
    ++apt_[region].next;
    ++stats_.allocated;
    const Page page = memory_.page(region, placed.local_row);
    if (page.first_row != placed.local_row) return;
    placed.new_page = true;
    placed.page_begin = page.begin;
    placed.page_first_row = page.first_row;
    placed.page_rows = page.rows;
}

void Aau::enter(RegionId region, std::uint32_t row_id, std::uint32_t local_row) {
    const Rat::Inserted inserted = rat_.insert(region, row_id, local_row);
    if (!inserted.evicted) return;
    apt_[inserted.victim_region].spilled = true;
    ++stats_.evictions;
    stats_.spill_bytes += spec_.entry;
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

}  // namespace moehub::sim
