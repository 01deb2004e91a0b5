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
    if (packets == 0 || offset < 0 || offset >= memory_.spec(region).row_bytes) {
        throw std::logic_error("AAU: a packet that lies outside its row");
    }
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
    const std::uint64_t row = row_key(region, row_id);
    if (held) {
        if (located.ready < last_read_) located.ready = read_until(row, located.ready);
    } else if (must_read) {
        located.ready = read(row, located.ready);
    }

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
