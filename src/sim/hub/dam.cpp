#include "sim/hub/dam.hpp"

#include <algorithm>
#include <stdexcept>

namespace moehub::sim {

BlockGroup Dam::add(const Range& range) {
    if (range.rows == 0 || range.group_rows == 0 || range.data_bytes < 1 ||
        range.data_bytes > range.row_bytes)
        throw std::logic_error("DAM: an empty range");
    const std::uint64_t end =
        range.begin + std::uint64_t{range.rows} * static_cast<std::uint64_t>(range.row_bytes);
    const auto after = std::upper_bound(begins_.begin(), begins_.end(), range.begin);
    const auto entry = table_.begin() + (after - begins_.begin());
    if ((entry != table_.end() && entry->range.begin < end) ||
        (entry != table_.begin() && std::prev(entry)->end > range.begin))
        throw std::logic_error("DAM: ranges overlap");
    const auto first = static_cast<BlockGroup>(groups_.size());
    recent_ = static_cast<std::size_t>(entry - table_.begin());
    table_.insert(entry, {range, end, first});
    begins_.insert(after, range.begin);
    ++stats_.entries;
    append_groups(range);
    return first;
}

void Dam::append_groups(const Range& range) {
    for (std::uint32_t left = range.rows; left != 0;) {
        const std::uint32_t rows = std::min(left, range.group_rows);
        groups_.push_back({.threshold = rows * range.data_bytes});
        left -= rows;
    }
}

std::optional<Dam::Ready> Dam::acknowledged(std::uint64_t address, Bytes bytes,
                                            std::uint32_t packets, Ps visible) {
    const Entry* entry = find(address);
    if (entry == nullptr) return std::nullopt;
    const Range& range = entry->range;
    const std::uint64_t within = address - range.begin;
    const std::uint64_t row = within / static_cast<std::uint64_t>(range.row_bytes);
    const auto offset = static_cast<Bytes>(within % static_cast<std::uint64_t>(range.row_bytes));
    if (bytes < 0 || bytes > range.row_bytes - offset)
        throw std::logic_error("DAM: an acknowledgement beyond the end of its row");
    const Bytes data = std::min(bytes, range.data_bytes - offset);
    if (data <= 0) return std::nullopt;
    stats_.updates += packets;
    const auto group = static_cast<std::uint32_t>(row) / range.group_rows;
    return count(entry->first + group, data, visible);
}

std::optional<Dam::Ready> Dam::count(BlockGroup number, Bytes bytes, Ps visible) {
    Group& group = groups_[number];
    if (complete_ || bytes > group.threshold - group.counted)
        throw std::logic_error("DAM: a group was given more than its data");
    group.counted += bytes;
    group.latest = std::max(group.latest, group.held ? visible : hold(number, visible));
    if (group.counted != group.threshold) return std::nullopt;
    ++stats_.ready;
    return Ready{number, group.latest};
}

std::optional<Dam::Ready> Dam::expect(BlockGroup number, Bytes data) {
    Group& group = groups_[number];
    if (data > group.threshold || data < group.counted)
        throw std::logic_error("DAM: a group has more than it is to get");
    if (data == group.threshold) return std::nullopt;  // as it was
    group.threshold = data;
    if (group.counted != data) return std::nullopt;
    ++stats_.ready;
    return Ready{number, group.latest};
}

/// Makes room for a group's counter; returns when it can count. Those that are full need none.
Ps Dam::hold(BlockGroup number, Ps now) {
    Group& group = groups_[number];
    while (!held_.empty() && held_.size() >= static_cast<std::size_t>(spec_.counters)) {
        Group& oldest = groups_[held_.front()];
        held_.pop_front();
        oldest.held = false;
        oldest.spilled = oldest.counted != oldest.threshold;
    }
    group.held = true;
    held_.push_back(number);
    if (!group.spilled) return now;
    ++stats_.restored;
    return now + spec_.restore;
}

const Dam::Entry* Dam::find(std::uint64_t address) {
    if (recent_ < table_.size() && table_[recent_].holds(address)) return &table_[recent_];
    const auto behind = std::upper_bound(begins_.begin(), begins_.end(), address);
    if (behind == begins_.begin()) return nullptr;
    const auto index = static_cast<std::size_t>(behind - begins_.begin()) - 1;
    if (!table_[index].holds(address)) return nullptr;
    recent_ = index;
    return &table_[index];
}

std::vector<BlockGroup> Dam::all_ready() {
    if (complete_) throw std::logic_error("DAM: AllReady twice");
    complete_ = true;
    std::vector<BlockGroup> partial;
    for (std::size_t i = 0; i < groups_.size(); ++i) {
        const Group& group = groups_[i];
        if (group.counted == 0)
            ++stats_.deallocated;
        else if (group.counted < group.threshold)
            partial.push_back(static_cast<BlockGroup>(i));
    }
    stats_.released = static_cast<std::int64_t>(partial.size());
    return partial;
}

}  // namespace moehub::sim
