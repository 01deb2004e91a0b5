#include "sim/fabric.hpp"

#include <moehub/error.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace moehub::sim {
namespace {

Wire link_wire(const Machine& machine, const Layout& layout) {
    if (layout.mesh) return Wire(machine.link, layout.planes, 1);
    const auto switches = static_cast<std::uint32_t>(machine.switches);
    return Wire(machine.link, switches, switches / layout.planes);
}

Wire nic_wire(const Machine& machine, const Layout& layout, double share, Ps latency) {
    if (!layout.nics) return {};
    LinkSpec spec = machine.nic;
    spec.latency = latency;
    return Wire(spec, share, 1);
}

/// Of one leaf-to-spine link: a leaf has as much bandwidth up as its nodes have NICs on the rail.
double spine_share(const Machine& machine, const Layout& layout) {
    return layout.spines == 0 ? 1.0 : static_cast<double>(layout.spines) / machine.nodes;
}

/// In whole packets, as many as can be counted, and no more than a shared FIFO's staging holds.
Bytes train_bytes(const Machine& machine, const FabricOptions& options, const Wire& link) {
    Bytes most = std::min(options.train, link.largest_train);
    if (options.queueing == Queueing::shared_fifo) {
        most = std::min(most, Bytes{machine.hub.staging_packets} * link.fold * link.payload);
    }
    return std::max<Bytes>(most / link.payload, 1) * link.payload;
}

/// Without an RPM to merge them, stores travel as they leave the SMs.
Machine with_plain_stores(Machine machine, const FabricOptions& options) {
    if (options.queueing == Queueing::shared_fifo) {
        machine.link.payload = std::min(machine.link.payload, machine.moe_hub.store_bytes);
    }
    return machine;
}

Ps smallest_lag(const Machine& machine, const Layout& layout) {
    const HubSpec& hub = machine.hub;
    Ps lag =
        std::min({machine.link.latency, hub.store_latency, hub.write_latency, hub.read_latency});
    if (layout.nics) lag = std::min(lag, machine.nic.latency);
    if (layout.spines > 0) lag = std::min(lag, machine.spine_latency);
    return lag;
}

}  // namespace

Fabric::Fabric(const Machine& machine, const FabricOptions& options)
    : machine_(with_plain_stores(machine, options)),
      options_(options),
      layout_(machine, options.grain == Grain::row),
      link_(link_wire(machine_, layout_)),
      train_(train_bytes(machine, options, link_)),
      nic_(nic_wire(machine, layout_, 1.0, machine.nic.latency)),
      spine_(nic_wire(machine, layout_, spine_share(machine, layout_), machine.spine_latency)),
      engine_(layout_.components(), smallest_lag(machine, layout_), options.scheme) {
    egresses_.reserve(layout_.gpus);
    endpoints_.reserve(layout_.gpus);
    ports_.reserve(layout_.ports());
    for (std::uint32_t i = 0; i < layout_.gpus; ++i) {
        egresses_.emplace_back(*this, static_cast<GpuId>(i));
        endpoints_.emplace_back(*this, static_cast<GpuId>(i));
    }
    for (std::uint32_t i = 0; i < layout_.ports(); ++i) ports_.emplace_back(*this, i);
}

const Wire& Fabric::wire_of_port(std::uint32_t port) const {
    if (!layout_.mesh && port < layout_.down(layout_.gpus, 0)) return link_;
    return layout_.is_nic_down(port) ? nic_ : spine_;
}

std::uint32_t Fabric::request_channels(std::uint32_t uplink) const {
    const LinkSpec& spec = layout_.is_nic(uplink) ? machine_.nic : machine_.link;
    return std::min(static_cast<std::uint32_t>(spec.request_channels), layout_.gpus);
}

PoolId Fabric::add_pool(ComponentId owner, const Wire& wire) {
    pools_.emplace_back(wire.buffer_flits, owner, wire.latency);
    return static_cast<PoolId>(pools_.size() - 1);
}

PoolId Fabric::share_hold(PoolId hold, std::uint32_t copies) {
    if (hold == kNoPool) return hold;
    if (free_shared_.empty()) {
        free_shared_.push_back(static_cast<PoolId>(shared_.size()));
        shared_.emplace_back();
    }
    const PoolId id = free_shared_.back();
    free_shared_.pop_back();
    shared_[id] = {hold, copies, 0};
    return id | kSharedBit;
}

bool Fabric::release_shared(PoolId& hold, Ps& left) {
    const PoolId id = hold & ~kSharedBit;
    Shared& shared = shared_[id];
    shared.latest = std::max(shared.latest, left);
    if (--shared.copies > 0) return false;
    free_shared_.push_back(id);
    hold = shared.pool;
    left = shared.latest;
    return true;
}

TransferId Fabric::add_transfer(const Transfer& transfer) {
    const Bytes most = link_.payload * Bytes{0xffffffff};
    if (transfer.bytes <= 0 || transfer.bytes > most) {
        throw InputError(fmt::format("a transfer of {} B, allowed 1 to {}", transfer.bytes, most));
    }
    return transfers_.add(transfer);
}

void Fabric::cut(Unit& unit, TransferId id, const Wire& wire, std::uint32_t index) const {
    const Transfer& transfer = transfers_[id];
    const Bytes size = unit_bytes(wire);
    const Bytes bytes = std::min(transfer.bytes - index * size, size);
    unit.transfer = id;
    unit.index = index;
    unit.bytes = static_cast<std::uint32_t>(bytes);
    unit.packets = wire.packets(bytes);
    unit.kind = transfer.kind;
    unit.phase = Phase::whole;
    unit.src = transfer.src;
    unit.dst = transfer.dst;
    unit.multicast = transfer.multicast;
    unit.gather = false;
    unit.flits = wire.flits(unit.kind, bytes, unit.packets, unit.multicast);
}

void Fabric::send_train(ComponentId target, const Unit& unit, PoolId hold, const Flight& flight) {
    const bool whole =
        options_.grain == Grain::packet || unit.packets == 1 || target < layout_.gpus;
    if (!whole) {
        Unit& head = push(target, unit, flight.head, flight.source);
        head.phase = Phase::head;
        head.hold = hold;
    }
    Unit& tail = push(target, unit, flight.tail, flight.source);
    tail.phase = whole ? Phase::whole : Phase::tail;
    tail.hold = hold;
}

Ps Fabric::run(ComponentId component, std::span<const Event> events, Ps until) {
    if (component < layout_.gpus) {
        return endpoints_[component].run(events, until);
    }
    if (component < 2 * layout_.gpus) {
        return egresses_[component - layout_.gpus].run(*this, events, until);
    }
    return ports_[component - 2 * layout_.gpus].run(*this, events, until);
}

void Fabric::run() {
    for (std::uint32_t i = 0; i < layout_.gpus; ++i) engine_.wake(layout_.gpu(i), 0);
    engine_.run(*this);
    std::string waiters;
    for (const Endpoint& endpoint : endpoints_) {
        if (!endpoint.idle()) endpoint.describe_waiters(waiters);
    }
    if (!waiters.empty())
        throw Deadlock("nothing moves any more, and still waiting are:" + waiters);
    for (std::size_t i = 0; i < transfers_.size(); ++i) {
        const Transfer& transfer = transfers_[static_cast<TransferId>(i)];
        if (transfer.completed == transfer.bytes) continue;
        throw Deadlock(fmt::format("gpu {} got answers for {} of the {} B it sent to gpu {}",
                                   transfer.src, transfer.completed, transfer.bytes, transfer.dst));
    }
}

void Fabric::drop_programs() {
    for (Endpoint& endpoint : endpoints_) endpoint.drop_programs();
}

Bytes Fabric::wire_bytes_up() const {
    Bytes sum = 0;
    for (const Egress& egress : egresses_) {
        sum += egress.link_flits() * link_.flit + egress.nic_flits() * nic_.flit;
    }
    return sum;
}

Bytes Fabric::wire_bytes_down() const {
    Bytes sum = 0;
    for (std::uint32_t i = 0; i < layout_.ports(); ++i) {
        if (layout_.leads_to_gpu(i)) sum += ports_[i].flits() * wire_of_port(i).flit;
    }
    if (!layout_.mesh) return sum;
    for (const Egress& egress : egresses_) sum += egress.link_flits() * link_.flit;
    return sum;
}

std::int64_t Fabric::packets_received() const {
    std::int64_t sum = 0;
    for (const Endpoint& endpoint : endpoints_) sum += endpoint.packets();
    return sum;
}

Bytes Fabric::payload_received() const {
    Bytes sum = 0;
    for (const Endpoint& endpoint : endpoints_) sum += endpoint.received();
    return sum;
}

}  // namespace moehub::sim
