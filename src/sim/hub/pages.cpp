#include "sim/hub/pages.hpp"

#include <moehub/error.hpp>

#include <algorithm>
#include <limits>
#include <stdexcept>

#include <fmt/format.h>

namespace moehub::sim {
namespace {

constexpr std::int64_t kMostRows = std::numeric_limits<std::uint32_t>::max();
constexpr Bytes kMostBytes = Bytes{1} << 60;  // of all addresses: sums stay far from overflow
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
    if (page >= region.begins.size() || region.begins[page] == kNone) {
        throw std::logic_error("pages: a page that was not handed out");
    }
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
