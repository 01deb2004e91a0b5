#include "sim/hub/hub.hpp"

#include "sim/recorder.hpp"

#include <algorithm>
#include <functional>
#include <utility>

namespace moehub::sim {
namespace {

AauSpec aau_spec(const Machine& machine, HubUnits units) {
    AauSpec spec;
    if (units == HubUnits::dysharp) {
        spec.rat = {machine.dysharp.tlb_entries, machine.dysharp.tlb_banks};
        spec.lookup = machine.dysharp.tlb_lookup;
        spec.restore = machine.hub.read_latency;
        spec.entry = 4;  // a bit and 31 of a row's number
        spec.in_memory = true;
        spec.reads = machine.dysharp.tlb_entries;  // a miss takes its entry at once
        return spec;
    }
    spec.rat = {machine.moe_hub.rat_entries, machine.moe_hub.rat_banks};
    spec.lookup = machine.moe_hub.rat_lookup;
    spec.restore = machine.hub.read_latency;
    return spec;
}

DamSpec dam_spec(const Machine& machine, HubUnits units) {
    return {units == HubUnits::dysharp ? machine.dysharp.ts_entries : machine.moe_hub.dam_entries,
            machine.hub.read_latency};
}

}  // namespace

Hub::Hub(Endpoint& gpu, const Machine& machine, const Options& options)
    : gpu_(gpu),
      units_(options.units),
      ready_latency_(options.units == HubUnits::dysharp ? machine.dysharp.poll
                                                        : machine.moe_hub.ready_latency),
      plain_(machine.hub),
      line_(options.line),
      numbers_(options.numbers),
      aau_(aau_spec(machine, options.units)),
      dam_(dam_spec(machine, options.units)) {
    aau_.memory().set_pool(options.page_pool);
    gpu.attach(*this);
}

RegionId Hub::add_region(const RowSpace& space) {
    Region region{space, RowMemory(space.data_bytes, line_, space.source_column, numbers_)};
    const Bytes row_bytes = space.data_bytes + (space.source_column ? kSourceColumn : 0);
    if (space.allocated)
        region.aau = aau_.add_region({space.name, space.rows, row_bytes, space.page_rows});
    regions_.push_back(std::move(region));
    return static_cast<RegionId>(regions_.size() - 1);
}

RegionId Hub::add_sums(RowSums::Extent extent, Bytes row_bytes) {
    sums_.emplace_back(extent, row_bytes, line_, numbers_ > 0);
    return static_cast<RegionId>(sums_.size() - 1);
}

Hub::TakenIn Hub::take_in(const Arrival& arrival) {
    return arrival.transfer.target.allocate ? take_in_row(arrival, arrival.transfer.target.region)
                                            : take_in_plain(arrival);
}

Hub::TakenIn Hub::take_in_list(const ListArrival& list) {
    TakenIn all;
    for (const RegionId region : list.regions) {
        const TakenIn one = take_in_row(list.arrival, region);
        all = {std::max(all.passed, one.passed), std::max(all.visible, one.visible)};
    }
    return all;
}

/// A row's number is looked up as it was when the row came; one that never came is a defect. Where
/// in the row the bytes lie is no matter: results may be wider than what came.
Hub::Found Hub::read_list(const ListArrival& list) {
    const RowTarget& target = list.arrival.transfer.target;
    const Bytes offset = target.offset + list.arrival.offset;
    Found found;
    for (const RegionId id : list.regions) {
        const Aau::Located located =
            locate(id, {target.row, 0, 0}, list.arrival.train.packets, list.arrival.now);
        if (located.first) throw std::logic_error("results are asked for of a row that never came");
        found.ready = std::max(found.ready, located.ready);
        found.sum.add(sums_[regions_[id].results].read(
            {located.local_row, offset, Bytes{list.arrival.train.bytes}}));
    }
    return found;
}

Sum Hub::read_results(std::span<const RegionId> regions, const RowStretch& stretch) {
    Sum sum;
    for (const RegionId id : regions) {
        const Aau::Located located = locate(id, {stretch.row, 0, 0}, 1, gpu_.now());
        if (located.first) throw std::logic_error("results are read of a row that never came");
        sum.add(
            sums_[regions_[id].results].read({located.local_row, stretch.offset, stretch.bytes}));
    }
    return sum;
}

Aau::Located Hub::locate(RegionId region, const RowStretch& stretch, std::uint32_t packets,
                         Ps now) {
    if (Recorder* recorder = gpu_.recorder())
        recorder->count(gpu_.id(), units_ == HubUnits::dysharp ? "al" : "aau", now, packets);
    return aau_.locate(regions_[region].aau, stretch.row, stretch.offset, packets, now);
}

Hub::TakenIn Hub::take_in_row(const Arrival& arrival, RegionId id) {
    const RowTarget& target = arrival.transfer.target;
    Region& region = regions_[id];
    const Bytes offset = target.offset + arrival.offset;
    const Aau::Located located =
        locate(id, {target.row, offset, 0}, arrival.train.packets, arrival.now);
    const Ps visible = located.ready + plain_.write_latency;
    if (located.new_page && region.space.block_rows > 0) add_blocks(id, located);
    const Bytes end = offset + arrival.train.bytes;
    const Bytes data = std::min(end, region.space.data_bytes) - offset;
    const bool source = end > region.space.data_bytes;
    if (data > 0) {
        write({id, {located.local_row, target.row, offset, data, target.numbers}}, arrival.fault);
        count({located.address, data, arrival.train.packets - (source ? 1u : 0u), visible});
    }
    if (source) {
        write({id, {located.local_row, target.row, 0, 0, nullptr}, true, target.tag},
              arrival.fault);
    }
    return {located.passed, visible};
}

/// Conventional stores know where their rows lie, and may go on into the next.
Hub::TakenIn Hub::take_in_plain(const Arrival& arrival) {
    const RowTarget& target = arrival.transfer.target;
    const Bytes row_bytes = regions_[target.region].space.data_bytes;
    const RowStretch stretch{target.row, target.offset + arrival.offset,
                             Bytes{arrival.train.bytes}};
    each_row(stretch, row_bytes, line_,
             [&](std::uint32_t row, std::uint64_t first, std::uint64_t lines) {
                 if (lines == 0) return;
                 const double* numbers =
                     numbers_ > 0 ? target.numbers + (row - target.row) * numbers_ : nullptr;
                 write({target.region,
                        {row, row, static_cast<Bytes>(first) * line_,
                         static_cast<Bytes>(lines) * line_, numbers}},
                       arrival.fault);
             });
    return {arrival.now, arrival.now + plain_.write_latency};
}

void Hub::write(const Written& what, const Fault& fault) {
    switch (fault.what) {
        case Fault::What::duplicate:
            put_down(what);
            [[fallthrough]];
        case Fault::What::none:
            return put_down(what);
        case Fault::What::delay:
            late_.push_back({gpu_.now() + fault.late, what});
            return gpu_.call_at(late_.back().time, *this);
        case Fault::What::drop:
            break;
    }
}

void Hub::put_down(const Written& what) {
    RowMemory& memory = regions_[what.region].memory;
    if (!what.source) return memory.write(what.piece);
    memory.write_source(what.piece.number, what.piece.row_id, what.tag);
}

/// A fault is in the contents alone: who watches counts what came.
void Hub::add_sum(const SumArrival& arrival, const Sum& sum, const Fault& fault) {
    if (arrival.into < watchers_.size())
        watchers_[arrival.into].count(gpu_, arrival.stretch, arrival.answers, arrival.visible);
    if (fault.what == Fault::What::drop || fault.what == Fault::What::delay) return;
    RowSums& into = sums_[arrival.into];
    into.add(arrival.stretch, sum, arrival.answers);
    if (fault.what == Fault::What::duplicate) into.add(arrival.stretch, sum, arrival.answers);
}

void Hub::watch_sums(RegionId region, const SumsWatch& watch) {
    if (watchers_.size() <= region) watchers_.resize(region + 1);
    watchers_[region] = SumsWatcher(sums_[region], watch);
}

/// The dependency table learns of a page when it is handed out.
void Hub::add_blocks(RegionId id, const Aau::Located& located) {
    const RowSpace& space = regions_[id].space;
    const std::uint32_t first = located.page_first_row / space.block_rows;
    const BlockGroup group =
        dam_.add({located.page_begin, located.page_rows, space.block_rows,
                  space.data_bytes + (space.source_column ? kSourceColumn : 0), space.data_bytes});
    const std::uint32_t blocks = (located.page_rows - 1) / space.block_rows + 1;
    blocks_.resize(group + blocks);
    for (std::uint32_t i = 0; i < blocks; ++i) blocks_[group + i] = {id, first + i};
    regions_[id].first_block = group - first;
    expect_last(id);
}

void Hub::expect(RegionId id, std::int64_t rows) {
    regions_[id].expected = rows;
    if (this->rows(id) > 0) expect_last(id);
}

/// Tells the DAM how much the last block gets, for regions in one piece: blocks are known at once.
void Hub::expect_last(RegionId id) {
    const Region& region = regions_[id];
    if (region.expected < 0) return;
    const std::int64_t size = region.space.block_rows;
    const std::int64_t left = region.expected % size;
    if (left == 0) return;
    const auto last = static_cast<BlockGroup>(region.expected / size);
    if (const auto ready = dam_.expect(region.first_block + last, left * region.space.data_bytes))
        tell(*ready);
}

void Hub::count(const Counted& what) {
    const std::int64_t before = dam_.stats().updates;
    const auto ready = dam_.acknowledged(what.address, what.bytes, what.packets, what.visible);
    if (Recorder* recorder = gpu_.recorder())
        recorder->count(gpu_.id(), units_ == HubUnits::dysharp ? "ts" : "dam", what.visible,
                        dam_.stats().updates - before);
    if (ready) tell(*ready);
}

void Hub::tell(const Dam::Ready& ready) {
    if (listener_ == nullptr) return;
    const Ps time = std::max(ready.time, gpu_.now()) + ready_latency_;
    due_.push_back({time, ready.group});
    std::push_heap(due_.begin(), due_.end(), std::greater<>());
    gpu_.call_at(time, *this);
}

void Hub::ring() {
    for (Late& late : std::exchange(late_, {}))
        if (late.time > gpu_.now())
            late_.push_back(late);
        else
            put_down(late.what);
    while (!due_.empty() && due_.front().time <= gpu_.now()) {
        std::pop_heap(due_.begin(), due_.end(), std::greater<>());
        const BlockGroup group = due_.back().group;
        due_.pop_back();
        release(group);
    }
}

void Hub::release(BlockGroup group) {
    if (Recorder* recorder = gpu_.recorder())
        recorder->count(gpu_.id(), units_ == HubUnits::dysharp ? "ts releases" : "dam releases",
                        gpu_.now(), 1);
    listener_->rows_ready(blocks_[group].region, blocks_[group].row_block);
}

void Hub::all_ready() {
    for (const BlockGroup group : dam_.all_ready())
        if (listener_ != nullptr) release(group);
}

}  // namespace moehub::sim
