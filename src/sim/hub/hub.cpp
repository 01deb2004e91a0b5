#include "sim/hub/hub.hpp"

#include <algorithm>
#include <functional>

namespace moehub::sim {
namespace {

AauSpec aau_spec(const Machine& machine) {
    AauSpec spec;
    spec.rat = {machine.moe_hub.rat_entries, machine.moe_hub.rat_banks};
    spec.lookup = machine.moe_hub.rat_lookup;
    spec.restore = machine.hub.read_latency;
    return spec;
}

}  // namespace

Hub::Hub(Endpoint& gpu, const Machine& machine, const Options& options)
    : gpu_(gpu),
      spec_(machine.moe_hub),
      plain_(machine.hub),
      line_(options.line),
      numbers_(options.numbers),
      aau_(aau_spec(machine)) {
    aau_.memory().set_pool(options.page_pool);
    gpu.attach(*this);
}

RegionId Hub::add_region(const RowSpace& space) {
    Region region{space, RowMemory(space.data_bytes, line_, space.source_column, numbers_)};
    const Bytes row_bytes = space.data_bytes + (space.source_column ? kSourceColumn : 0);
    if (space.allocated) {
        region.aau = aau_.add_region({space.name, space.rows, row_bytes, space.page_rows});
    }
    regions_.push_back(std::move(region));
    return static_cast<RegionId>(regions_.size() - 1);
}

Ps Hub::take_in(const Arrival& arrival) {
    const RowTarget& target = arrival.transfer.target;
    Region& region = regions_[target.region];
    const Bytes offset = target.offset + arrival.offset;
    std::uint32_t place = target.row;
    Ps visible = arrival.now + plain_.write_latency;
    std::uint64_t address = 0;
    if (target.allocate) {
        const Aau::Placed placed =
            aau_.place(region.aau, target.row, offset, arrival.unit.packets, arrival.now);
        place = placed.local_row;
        address = placed.address;
        visible = placed.ready + plain_.write_latency;
        if (placed.new_page && region.space.block_rows > 0) add_blocks(target.region, placed);
    }
    const Bytes end = offset + arrival.unit.bytes;
    const Bytes data = std::min(end, region.space.data_bytes) - offset;
    const bool source = end > region.space.data_bytes;
    if (data > 0) {
        region.memory.write({place, target.row, offset, data, target.numbers});
        if (target.allocate) {
            count({address, data, arrival.unit.packets - (source ? 1u : 0u), visible});
        }
    }
    if (source) region.memory.write_source(place, target.row, target.tag);
    return visible;
}

/// The dependency table learns of a page when it is handed out.
void Hub::add_blocks(RegionId id, const Aau::Placed& placed) {
    const RowSpace& space = regions_[id].space;
    const std::uint32_t first = placed.page_first_row / space.block_rows;
    const BlockGroup group =
        dam_.add({placed.page_begin, placed.page_rows, space.block_rows,
                  space.data_bytes + (space.source_column ? kSourceColumn : 0), space.data_bytes});
    const std::uint32_t blocks = (placed.page_rows - 1) / space.block_rows + 1;
    blocks_.resize(group + blocks);
    for (std::uint32_t i = 0; i < blocks; ++i) blocks_[group + i] = {id, first + i};
}

void Hub::count(const Counted& what) {
    const auto ready = dam_.acknowledged(what.address, what.bytes, what.packets, what.visible);
    if (!ready || listener_ == nullptr) return;
    const Ps time = ready->time + spec_.ready_latency;
    due_.push_back({time, ready->group});
    std::push_heap(due_.begin(), due_.end(), std::greater<>());
    gpu_.call_at(time, *this);
}

void Hub::ring() {
    while (!due_.empty() && due_.front().time <= gpu_.now()) {
        std::pop_heap(due_.begin(), due_.end(), std::greater<>());
        const BlockOf block = blocks_[due_.back().group];
        due_.pop_back();
        listener_->rows_ready(block.region, block.row_block);
    }
}

void Hub::all_ready() {
    for (const BlockGroup group : dam_.all_ready()) {
        if (listener_ != nullptr) {
            listener_->rows_ready(blocks_[group].region, blocks_[group].row_block);
        }
    }
}

}  // namespace moehub::sim
