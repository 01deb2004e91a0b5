#include "sim/hub/rat.hpp"

#include <algorithm>
#include <stdexcept>

namespace moehub::sim {

void RowMap::insert(std::uint64_t key, std::uint32_t local_row) {
    if (3 * (size_ + 1) > 2 * slots_.size()) grow();
    Slot& slot = slots_[probe(key)];
    if (slot.used) throw std::logic_error("RAT: a row was entered twice");
    slot = {key, local_row, true};
    ++size_;
}

std::optional<std::uint32_t> RowMap::take(std::uint64_t key) {
    if (slots_.empty()) return std::nullopt;
    std::size_t hole = probe(key);
    if (!slots_[hole].used) return std::nullopt;
    const std::uint32_t local_row = slots_[hole].local_row;
    // What follows moves up wherever the hole lies between its home and its slot: no tombstones, so
    // that a table in which rows come and go for long stays as fast as a new one.
    for (std::size_t at = after(hole); slots_[at].used; at = after(at)) {
        const std::size_t mask = slots_.size() - 1;
        const std::size_t from_home = (at - home(slots_[at].key)) & mask;
        if (from_home < ((at - hole) & mask)) continue;
        slots_[hole] = slots_[at];
        hole = at;
    }
    slots_[hole].used = false;
    --size_;
    return local_row;
}

void RowMap::grow() {
    std::vector<Slot> old(std::max<std::size_t>(16, 2 * slots_.size()));
    old.swap(slots_);
    for (const Slot& slot : old) {
        if (slot.used) slots_[probe(slot.key)] = slot;
    }
}

Rat::Rat(const RatSpec& spec) {
    if (spec.entries < 1 || spec.banks < 1) {
        throw std::logic_error("RAT: at least one entry and one bank");
    }
    const auto entries = static_cast<std::size_t>(spec.entries);
    const std::size_t banks = std::min(entries, static_cast<std::size_t>(spec.banks));
    banks_.resize(banks);
    for (std::size_t i = 0; i < banks; ++i) {
        banks_[i].entries = entries / banks + (i < entries % banks ? 1 : 0);
    }
}

Rat::Inserted Rat::insert(RegionId region, std::uint32_t row_id, std::uint32_t local_row) {
    const std::uint64_t key = row_key(region, row_id);
    held_.insert(key, local_row);
    Bank& into = banks_[bank(region, row_id)];
    if (into.rows.size() < into.entries) {
        into.rows.push_back(key);
        return {};
    }
    const std::uint64_t victim = into.rows[into.oldest];
    into.rows[into.oldest] = key;
    if (++into.oldest == into.entries) into.oldest = 0;
    spilled_.insert(victim, *held_.take(victim));
    return {.evicted = true, .victim_region = region_of(victim)};
}

std::optional<std::uint32_t> Rat::take_spilled(RegionId region, std::uint32_t row_id) {
    return spilled_.take(row_key(region, row_id));
}

}  // namespace moehub::sim
