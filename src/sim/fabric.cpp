#include "sim/fabric.hpp"

#include "sim/hub/hub.hpp"

#include <moehub/error.hpp>

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

namespace moehub::sim {
namespace {

Wire link_wire(const Machine& machine, const Topology& topology) {
    if (topology.mesh) return Wire(machine.link, topology.planes, 1);
    const auto switches = static_cast<std::uint32_t>(machine.switches);
    return Wire(machine.link, switches, switches / topology.planes);
}

/// Where NICs send several packets as one, buffers have room for two more of those.
LinkSpec nic_spec(const Machine& machine, Ps latency, const FabricOptions& options) {
    LinkSpec spec = machine.nic;
    spec.latency = latency;
    if (options.grain == Grain::row)
        spec.buffer_flits +=
            static_cast<int>(2 * options.nic_train / std::max<Bytes>(1, spec.flit));
    return spec;
}

Wire nic_wire(const Machine& machine, const Topology& topology, const FabricOptions& options) {
    if (!topology.nics) return {};
    return Wire(nic_spec(machine, machine.nic.latency, options), 1.0, 1);
}

/// A wire between a leaf and a spine: the leaf's uplinks, each of a NIC's rate, are spread over the
/// spines.
Wire spine_wire(const Machine& machine, const Topology& topology, const FabricOptions& options) {
    if (topology.spines == 0) return {};
    const LinkSpec spec = nic_spec(machine, machine.spine_latency, options);
    const std::uint32_t cables = topology.uplinks_of_leaf;
    if (cables % topology.spines == 0) return Wire(spec, 1.0, cables / topology.spines);
    return Wire(spec, static_cast<double>(topology.spines) / cables, 1);
}

/// Payload in whole packets, as many as can be counted, no more than a shared FIFO's staging holds.
Bytes largest_train_of(const Machine& machine, const FabricOptions& options, const Wire& link) {
    Bytes most = std::min(options.train, link.largest_train);
    if (options.queueing == Queueing::shared_fifo)
        most = std::min(most, Bytes{machine.hub.staging_packets} * link.fold * link.payload);
    return std::max<Bytes>(most / link.payload, 1) * link.payload;
}

/// A switch that is out of service takes its share of every GPU's links along.
Machine in_service(Machine machine) {
    const int left = machine.switches - machine.switches_down;
    if (machine.switches_down > 0)
        machine.link.bandwidth *= static_cast<double>(left) / machine.switches;
    machine.switches = left;
    machine.switches_down = 0;
    return machine;
}

Machine with_lines(const Machine& whole, const FabricOptions& options) {
    Machine machine = in_service(whole);
    machine.link.payload = line_bytes(machine, options.queueing, options.packet);
    return machine;
}

Ps smallest_lag(const Machine& machine, const Topology& topology) {
    const HubSpec& hub = machine.hub;
    Ps lag =
        std::min({machine.link.latency, hub.store_latency, hub.write_latency, hub.read_latency});
    if (topology.nics) lag = std::min(lag, machine.nic.latency);
    if (topology.spines > 0) lag = std::min(lag, machine.spine_latency);
    return lag;
}

}  // namespace

Bytes line_bytes(const Machine& machine, Queueing queueing, Bytes packet) {
    const Bytes most = machine.link.payload;
    if (queueing == Queueing::shared_fifo) return std::min(most, machine.moe_hub.store_bytes);
    return packet > 0 ? std::min(most, packet) : most;
}

Fabric::Fabric(const Machine& machine, const FabricOptions& options)
    : machine_(with_lines(machine, options)),
      options_(options),
      topology_(machine_, options.grain == Grain::row),
      link_(link_wire(machine_, topology_)),
      train_(largest_train_of(machine, options, link_)),
      nic_(nic_wire(machine, topology_, options)),
      spine_(spine_wire(machine, topology_, options)),
      engine_(topology_.components(), smallest_lag(machine, topology_), options.scheme) {
    egresses_.reserve(topology_.gpus);
    endpoints_.reserve(topology_.gpus);
    switches_.reserve(topology_.switches());
    for (std::uint32_t i = 0; i < topology_.gpus; ++i) {
        egresses_.emplace_back(*this, static_cast<GpuId>(i));
        endpoints_.emplace_back(*this, static_cast<GpuId>(i));
    }
    for (SwitchId i = 0; i < topology_.switches(); ++i) switches_.emplace_back(*this, i);
}

Fabric::~Fabric() = default;

const Wire& Fabric::wire_of_port(SwitchId number, std::uint32_t port) const {
    if (topology_.tier(number) == Topology::Tier::node) return link_;
    return topology_.leads_to_gpu(number, port) ? nic_ : spine_;
}

std::uint32_t Fabric::request_channels(std::uint32_t uplink) const {
    const LinkSpec& spec = topology_.is_nic(uplink) ? machine_.nic : machine_.link;
    return std::min(static_cast<std::uint32_t>(spec.request_channels), topology_.gpus);
}

PoolId Fabric::add_pool(ComponentId owner, const Wire& wire) {
    pools_.emplace_back(wire.buffer_flits, owner, wire.latency);
    return static_cast<PoolId>(pools_.size() - 1);
}

PoolId Fabric::share_hold(const Train& train, std::uint32_t copies) {
    if (train.hold == kNoPool) return train.hold;
    const PoolId id = shared_.take();
    shared_[id] = {train.hold, copies, 0, train.flits};
    return id | kSharedBit;
}

bool Fabric::release_shared(PoolId& hold, Ps& left, std::int64_t& flits) {
    const PoolId id = hold & ~kSharedBit;
    Shared& shared = shared_[id];
    shared.latest = std::max(shared.latest, left);
    if (--shared.copies > 0) return false;
    shared_.give_back(id);
    hold = shared.pool;
    left = shared.latest;
    flits = shared.flits;
    return true;
}

/// A list and its train must be such that flits can be counted, and one packet fits into a buffer.
void Fabric::check_list(const Transfer& transfer) const {
    if (!transfer.multicast() || !groups_.is_list(transfer.group)) return;
    constexpr std::uint64_t kMostGoals = 0x7fff;  // the target count has 15 bits
    constexpr std::uint64_t kMostFlits = 0xffff;
    const std::uint64_t goals = groups_.goals(transfer.group);
    const std::uint64_t packet = link_.full_packet_flits + list_flits(goals);
    const auto buffer = static_cast<std::uint64_t>(link_.buffer_flits);
    std::uint64_t most = packet;  // flits of one packet, or of a GPU's answers to one
    for (std::size_t i = 0; i < groups_.members(transfer.group).size(); ++i) {
        const std::uint64_t rows = groups_.regions(transfer.group, i).size();
        most = std::max<std::uint64_t>(most, link_.full_packet_flits * rows);
    }
    const std::uint64_t train = most * link_.packets(std::min(transfer.bytes, train_bytes(link_)));
    const std::string list =
        fmt::format("a token goes to {} experts of a node by one list: ", goals);
    if (goals > kMostGoals) throw InputError(list + fmt::format("allowed at most {}", kMostGoals));
    if (packet > buffer)
        throw InputError(list +
                         fmt::format("a packet has {} flits, and buffers hold {}", packet, buffer));
    if (train > kMostFlits)
        throw InputError(
            list + fmt::format("its packets have {} flits together, allowed at most {}{}", train,
                               kMostFlits,
                               options_.grain == Grain::row ? "; --grain packet has room" : ""));
}

/// Whether a switch can do with a transfer what `target.merge` asks for: it lies between two GPUs
/// of its node, or is met at. Elsewhere requests go one by one.
bool Fabric::merged(const Transfer& transfer) const {
    if (transfer.kind == EventKind::meet) return true;
    return transfer.target.merge > 0 && !topology_.mesh && transfer.src != transfer.dst &&
           topology_.same_node(transfer.src, transfer.dst);
}

void Fabric::check_merging(const Transfer& transfer) const {
    const bool meets = transfer.kind == EventKind::meet;
    const bool reduces = transfer.kind == EventKind::reduce;
    if (!meets && !reduces && transfer.target.merge == 0) return;
    if (options_.queueing == Queueing::rpm)
        throw std::logic_error("what a switch merges does not pass an RPM");
    if (transfer.multicast() || transfer.kind == EventKind::store ||
        transfer.kind == EventKind::atomic)
        throw std::logic_error("a switch merges loads and reductions between two GPUs only");
    if (meets && (topology_.mesh || transfer.target.merge == 0))
        throw std::logic_error("GPUs meet at a switch, and as many as are told");
    if (reduces && merged(transfer) && transfer.arrived != kNoCounter)
        throw std::logic_error("the home of merged reductions learns of them by Hub::watch_sums");
}

TransferId Fabric::add_transfer(const Transfer& transfer) {
    const Bytes most = link_.payload * Bytes{0xffffffff};
    if (transfer.bytes <= 0 || transfer.bytes > most)
        throw InputError(fmt::format("a transfer of {} B, allowed 1 to {}", transfer.bytes, most));
    if (transfer.multicast()) {
        for (const GpuId member : groups_.members(transfer.group))
            if (topology_.mesh || !topology_.same_node(member, transfer.src))
                throw std::logic_error("a switch copies to GPUs of its own node only");
    }
    if (transfer.added_in_network() && !machine_.sharp)
        throw std::logic_error("no leaf adds up: the machine has no SHARP");
    check_list(transfer);
    check_merging(transfer);
    const TransferId id = transfers_.add(transfer);
    if (!merged(transfer)) transfers_[id].target.merge = 0;
    const bool carries = transfer.target.region != kNoRegion || transfer.target.list != kNoGroup ||
                         (transfer.message != kNoMessage && messages_.has_rows(transfer.message));
    if (!carries) return id;
    const Fault& fault = options_.fault;
    transfers_[id].faulty = fault.what != Fault::What::none && carriers_ == fault.transfer;
    ++carriers_;
    if (fault.seen != nullptr) *fault.seen = carriers_;
    return id;
}

void Fabric::tell_taken_in(TransferId id, Ps now) {
    const GpuId gpu = transfers_[id].src;
    Train told;
    told.kind = EventKind::post;
    told.transfer = id;
    told.src = gpu;
    push(topology_.gpu(gpu), told, now + machine_.hub.store_latency, topology_.egress(gpu));
}

void Fabric::cut(Train& train, TransferId id, const Wire& wire, std::uint32_t index) {
    const Transfer& transfer = transfers_[id];
    const Bytes size = train_bytes(wire);
    const Bytes bytes = std::min(transfer.bytes - index * size, size);
    train.transfer = id;
    train.index = index;
    train.bytes = static_cast<std::uint32_t>(bytes);
    train.packets = wire.packets(bytes);
    train.kind = transfer.kind;
    train.phase = Phase::whole;
    train.src = transfer.src;
    train.dst = transfer.dst;
    train.multicast = transfer.multicast();
    train.gather = false;
    train.merge = transfer.target.merge > 0;
    train.sum = kNoSum;
    train.answers = 1;
    const RowTarget& target = transfer.target;
    if (train.kind == EventKind::reduce && target.region != kNoRegion) {
        train.sum = sums_.add(endpoints_[transfer.src].hub()->read_sum(
            target.region, {target.row, target.offset + index * size, bytes}));
    }
    const std::uint32_t more = train.multicast ? multicast_flits(transfer.group) : 0;
    train.flits = wire.flits(train.kind, bytes, train.packets, more);
}

void Fabric::send_train(ComponentId target, const Train& train, PoolId hold, const Flight& flight) {
    const bool whole = options_.grain == Grain::packet || train.packets == 1 ||
                       topology_.is_nic(train.plane) || target < topology_.gpus;
    if (!whole) {
        Train& head = push(target, train, flight.head, flight.source);
        head.phase = Phase::head;
        head.hold = hold;
    }
    Train& tail = push(target, train, flight.tail, flight.source);
    tail.phase = whole ? Phase::whole : Phase::tail;
    tail.hold = hold;
}

Ps Fabric::run(ComponentId component, std::span<const Event> events, Ps until) {
    if (component < topology_.gpus) return endpoints_[component].run(events, until);
    if (component < 2 * topology_.gpus)
        return egresses_[component - topology_.gpus].run(*this, events, until);
    return switches_[component - 2 * topology_.gpus].run(*this, events, until);
}

std::vector<GpuId> Fabric::all_gpus() const {
    std::vector<GpuId> gpus(topology_.gpus);
    std::iota(gpus.begin(), gpus.end(), GpuId{0});
    return gpus;
}

void Fabric::record(Recorder& recorder) {
    recorder_ = &recorder;
    for (Endpoint& endpoint : endpoints_) endpoint.record(recorder);
}

void Fabric::run() {
    for (std::uint32_t i = 0; i < topology_.gpus; ++i) engine_.wake(topology_.gpu(i), 0);
    engine_.run(*this);
    std::string waiters;
    for (const Endpoint& endpoint : endpoints_)
        if (!endpoint.idle()) endpoint.describe_waiters(waiters);
    if (!waiters.empty())
        throw Deadlock("nothing moves any more, and still waiting are:" + waiters);
    for (std::size_t i = 0; i < transfers_.size(); ++i) {
        const Transfer& transfer = transfers_[static_cast<TransferId>(i)];
        const Bytes all = transfer.bytes * answers(transfer);
        if (transfer.completed == all) continue;
        throw Deadlock(fmt::format("gpu {} got answers for {} of the {} B it sent to gpu {}",
                                   transfer.src, transfer.completed, all, transfer.dst));
    }
}

void Fabric::drop_programs() {
    for (Endpoint& endpoint : endpoints_) endpoint.drop_programs();
}

Bytes Fabric::wire_bytes_up() const {
    Bytes sum = 0;
    for (const Egress& egress : egresses_)
        for (const Uplinks::Uplink& uplink : egress.uplinks().all())
            sum += uplink.busy.flits() * uplink.wire->flit;
    return sum;
}

Bytes Fabric::wire_bytes_down() const {
    Bytes sum = 0;
    for (SwitchId i = 0; i < switches_.size(); ++i) {
        const std::span<const Port> ports = switches_[i].ports();
        for (std::uint32_t port = 0; port < ports.size(); ++port) {
            if (!topology_.leads_to_gpu(i, port)) continue;
            sum += ports[port].busy().flits() * wire_of_port(i, port).flit;
        }
    }
    if (!topology_.mesh) return sum;
    for (const Egress& egress : egresses_) {
        for (const Uplinks::Uplink& uplink : egress.uplinks().all())
            if (!topology_.is_nic(uplink.number)) sum += uplink.busy.flits() * link_.flit;
    }
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
