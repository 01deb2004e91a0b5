#include "sim/hub/aau_tables.hpp"

#include <moehub/error.hpp>

#include <algorithm>
#include <limits>
#include <stdexcept>

#include <fmt/format.h>

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
    for (const Slot& slot : old)
        if (slot.used) slots_[probe(slot.key)] = slot;
}

Rat::Rat(const RatSpec& spec) {
    if (spec.entries < 1 || spec.banks < 1)
        throw std::logic_error("RAT: at least one entry and one bank");
    const auto entries = static_cast<std::size_t>(spec.entries);
    const std::size_t banks = std::min(entries, static_cast<std::size_t>(spec.banks));
    banks_.resize(banks);
    for (std::size_t i = 0; i < banks; ++i)
        banks_[i].entries = entries / banks + (i < entries % banks ? 1 : 0);
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

namespace {

constexpr std::int64_t kMostRows = std::numeric_limits<std::uint32_t>::max();
constexpr Bytes kMostBytes = Bytes{1} << 60;  // bytes: sums stay far from overflow
constexpr std::uint64_t kAlignment = 128;

void check(const RegionSpec& spec, Bytes worst_case) {
    if (spec.rows < 1 || spec.rows > kMostRows) {
        throw InputError(fmt::format("{}: a region of {} rows, allowed 1 to {}", spec.name,
                                     spec.rows, kMostRows));
    }
    if (spec.row_bytes < 1) {
        throw InputError(
            fmt::format("{}: a row of {} B, allowed 1 and more", spec.name, spec.row_bytes));
    }
    const std::int64_t most = (kMostBytes - worst_case) / spec.row_bytes;
    if (std::max<std::int64_t>(spec.rows, spec.page_rows) > most) {
        throw InputError(
            fmt::format("{}: {} rows of {} B in pages of {} are more than the memory "
                        "of any GPU: --region-rows or --page-rows is too large",
                        spec.name, spec.rows, spec.row_bytes, spec.page_rows));
    }
}

}  // namespace

RegionId PagedMemory::add_region(const RegionSpec& spec) {
    check(spec, worst_case_);
    const auto id = static_cast<RegionId>(regions_.size());
    const Bytes bytes = spec.rows * spec.row_bytes;
    Region& region = regions_.emplace_back(Region{spec, spec.page_rows, {}});
    worst_case_ += bytes;
    if (spec.page_rows == 0) {
        region.rows_per_page = static_cast<std::uint32_t>(spec.rows);
        region.begins.push_back(cut(bytes));
        pieces_ += bytes;
    }
    return id;
}

std::uint64_t PagedMemory::address(RegionId id, std::uint32_t local_row) {
    Region& region = regions_[id];
    if (local_row >= region.spec.rows) {
        throw InputError(
            fmt::format("{}: its region has room for {} rows of {} B and more arrive: "
                        "--region-rows is too small",
                        region.spec.name, region.spec.rows, region.spec.row_bytes));
    }
    const std::uint32_t page = local_row / region.rows_per_page;
    std::uint64_t begin = page < region.begins.size() ? region.begins[page] : kNone;
    if (begin == kNone) begin = hand_out(region, page);
    return begin + std::uint64_t{local_row % region.rows_per_page} *
                       static_cast<std::uint64_t>(region.spec.row_bytes);
}

Page PagedMemory::page(RegionId id, std::uint32_t local_row) const {
    const Region& region = regions_[id];
    const std::uint32_t page = local_row / region.rows_per_page;
    if (page >= region.begins.size() || region.begins[page] == kNone)
        throw std::logic_error("pages: a page that was not handed out");
    const std::uint32_t first = page * region.rows_per_page;
    const std::int64_t rows =
        std::min<std::int64_t>(region.rows_per_page, region.spec.rows - first);
    return {region.begins[page], first, static_cast<std::uint32_t>(rows)};
}

std::uint64_t PagedMemory::hand_out(Region& region, std::uint32_t page) {
    const Bytes bytes = region.rows_per_page * region.spec.row_bytes;
    const Bytes pool = pool_ == 0 ? kMostBytes : std::min(pool_, kMostBytes);
    if (bytes > pool - paged_) {
        throw InputError(
            fmt::format("{}: no page of {} rows ({} B) is left in the pool of {} B, of "
                        "which {} B are in use: --page-pool is too small",
                        region.spec.name, region.rows_per_page, bytes, pool, paged_));
    }
    if (page >= region.begins.size()) region.begins.resize(page + std::size_t{1}, kNone);
    paged_ += bytes;
    return region.begins[page] = cut(bytes);
}

std::uint64_t PagedMemory::cut(Bytes bytes) {
    const std::uint64_t begin = next_;
    next_ += (static_cast<std::uint64_t>(bytes) + kAlignment - 1) / kAlignment * kAlignment;
    return begin;
}

}  // namespace moehub::sim
