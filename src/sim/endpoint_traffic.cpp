// What comes to a GPU over its links: into memory, and the answers to it.
#include "sim/endpoint.hpp"
#include "sim/fabric.hpp"
#include "sim/gpu/shared_rate.hpp"
#include "sim/hub/hub.hpp"
#include "sim/recorder.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

namespace moehub::sim {

Fault Endpoint::fault_of(const Transfer& transfer) const {
    return transfer.faulty ? fabric_->options().fault : Fault{};
}

bool Endpoint::to_self(const Train& train) const {
    return train.src == id_ && !train.multicast && !train.gather;
}

Bytes Endpoint::largest_to_self() const {
    return 0xffff * fabric_->link().payload;  // as many packets as can be counted
}

/// Takes a transfer of the GPU to itself from the hub's door straight to its ingress.
void Endpoint::post_to_self(TransferId id) {
    Train train;
    train.transfer = id;
    train.src = train.dst = id_;
    train.kind = fabric_->transfer(id).kind;
    const ComponentId self = fabric_->topology().gpu(id_);
    const Bytes largest = largest_to_self();
    Bytes left = fabric_->transfer(id).bytes;
    for (; left > 0; ++train.index) {
        train.bytes = static_cast<std::uint32_t>(std::min(left, largest));
        train.packets = fabric_->link().packets(train.bytes);
        left -= train.bytes;
        if (train.kind == EventKind::reduce) train.sum = read(train);
        fabric_->push(self, train, now_ + fabric_->machine().hub.store_latency, self);
    }
}

Ps Endpoint::memory_reads(double bytes) {
    return memory_ == nullptr ? now_ : memory_->take(bytes);
}

Ps Endpoint::memory_writes(double bytes) {
    return memory_ == nullptr ? now_ : memory_->take(bytes * write_cost_);
}

Ps Endpoint::copy_in_memory(Bytes bytes) {
    memory_reads(static_cast<double>(bytes));
    return memory_writes(static_cast<double>(bytes));
}

void Endpoint::receive(const Train& train) {
    if (!is_write(train.kind)) fabric_->release(train.hold, now_, train.flits);
    if (train.kind != EventKind::ack && !to_self(train)) packets_ += train.packets;
    const HubSpec& hub = fabric_->machine().hub;
    switch (train.kind) {
        case EventKind::store:
            store(train);
            break;
        case EventKind::reduce:
            reduce(train);
            break;
        case EventKind::load:
        case EventKind::atomic:
            if (fabric_->transfer(train.transfer).target.list != kNoGroup) {
                answer_list(train);
            } else {
                const Ps latency = memory_reads(train.bytes) - now_ + hub.read_latency;
                respond(train, EventKind::data, latency, train.packets, read(train));
            }
            break;
        case EventKind::data: {
            count_received(train);
            const Ps written = memory_writes(train.bytes);
            add_sum(train, written);
            deliver(train, written);
            complete(train);
            break;
        }
        case EventKind::ack:
            complete(train);
            break;
        case EventKind::post:  // the hub has taken in a store
            increase(stores_);
            break;
        case EventKind::meet:
            throw std::logic_error("a meet came through its switch");
    }
}

void Endpoint::count_received(const Train& train) {
    received_ += train.bytes;
    if (recorder_ != nullptr) recorder_->received(train.src, id_, train.bytes);
}

/// What the hub cannot pass on yet occupies its ingress, and so its credits.
void Endpoint::store(const Train& train) {
    const Transfer& transfer = fabric_->transfer(train.transfer);
    const GroupId list = transfer.target.list;
    const auto regions =
        list != kNoGroup ? fabric_->groups().regions_on(list, id_) : std::span<const RegionId>{};
    const std::size_t copies = std::max<std::size_t>(1, regions.size());
    const Ps written =
        memory_writes(static_cast<double>(train.bytes) * static_cast<double>(copies));
    const Ps write_latency = fabric_->machine().hub.write_latency;
    Hub::TakenIn taken{now_, now_};
    if (list != kNoGroup)
        taken = hub_->take_in_list({arrival_of(train), regions});
    else if (transfer.target.region != kNoRegion)
        taken = hub_->take_in(arrival_of(train));
    const Ps visible = std::max(written + write_latency, taken.visible);
    fabric_->release(train.hold, std::max(written, taken.passed), train.flits);
    if (!to_self(train)) count_received(train);
    deliver(train, visible);
    respond(train, EventKind::ack, visible - now_, train.packets, kNoSum);
}

/// Sums in memory are read, added to and written. What switches merge stands for several transfers:
/// the home is told of all of it together (Hub::watch_sums).
void Endpoint::reduce(const Train& train) {
    memory_reads(train.bytes);
    const Ps written = memory_writes(train.bytes);
    const Ps visible = written + fabric_->machine().hub.write_latency;
    add_sum(train, visible);
    fabric_->release(train.hold, written, train.flits);
    if (!to_self(train)) count_received(train);
    if (fabric_->transfer(train.transfer).target.merge == 0) deliver(train, visible);
    respond(train, EventKind::ack, visible - now_, train.packets, kNoSum);
}

HubArrival Endpoint::arrival_of(const Train& train) const {
    const Transfer& transfer = fabric_->transfer(train.transfer);
    const Wire& wire = fabric_->wire_of_uplink(train.plane);
    const Bytes size = to_self(train) ? largest_to_self() : fabric_->train_bytes(wire);
    return {transfer, train, train.index * size, now_, fault_of(transfer)};
}

/// What this GPU's experts made of a row: their sum, or each by itself for the switch to add.
void Endpoint::answer_list(const Train& request) {
    const GroupId list = fabric_->transfer(request.transfer).target.list;
    const auto regions = fabric_->groups().regions_on(list, id_);
    const auto rows = static_cast<std::uint16_t>(regions.size());
    Hub::Found found = hub_->read_list({arrival_of(request), regions});
    const Ps read = std::max(found.ready, memory_reads(static_cast<double>(request.bytes) * rows));
    const bool together = fabric_->machine().dysharp.reduce_locally;
    const auto packets = static_cast<std::uint16_t>(request.packets * (together ? 1 : rows));
    respond(request, EventKind::data, read - now_ + fabric_->machine().hub.read_latency, packets,
            fabric_->sums().add(std::move(found.sum)));
}

/// Whether all of a transfer's bytes are here, once this train is; of a multicast this GPU's copy,
/// of a load with several to answer all answers.
bool Endpoint::all_of_it(Transfer& transfer, const Train& train) {
    const Bytes answered = Bytes{train.answers} * train.bytes;
    transfer.delivered += answered;
    if (!transfer.multicast()) return transfer.delivered == transfer.bytes;
    if (transfer.kind != EventKind::store)
        return transfer.delivered == transfer.bytes * fabric_->answers(transfer);
    if (train.bytes == transfer.bytes) return true;
    Bytes& mine = copies_[train.transfer];
    mine += train.bytes;
    if (mine < transfer.bytes) return false;
    copies_.erase(train.transfer);
    return true;
}

void Endpoint::deliver(const Train& train, Ps visible) {
    Transfer& transfer = fabric_->transfer(train.transfer);
    if (!all_of_it(transfer, train)) return;
    if (recorder_ != nullptr) recorder_->rows.in_memory(train.transfer, id_, visible);
    const bool first = transfer.delivered_at == kNever;
    transfer.delivered_at = first ? visible : std::max(transfer.delivered_at, visible);
    if (transfer.told && to_self(train)) add_timer({.time = visible, .counter = stores_});
    if (transfer.arrived == kNoCounter) return;
    const bool carries = transfer.message != kNoMessage;
    add_timer({.time = visible,
               .counter = transfer.arrived,
               .carrier = carries ? train.transfer : kNoTransfer});
}

/// Puts down what a transfer carried, under the counter that tells of it.
void Endpoint::receive_message(TransferId carrier) {
    Transfer& transfer = fabric_->transfer(carrier);
    MessageStore& messages = fabric_->messages();
    Message message =
        transfer.kind == EventKind::load
            ? messages.part(transfer.message, transfer.target.row, transfer.target.tag)
            : messages.take(transfer.message);
    std::vector<Received>& inbox = counters_[transfer.arrived].inbox;
    const GpuId from = transfer.kind == EventKind::load ? transfer.dst : transfer.src;
    const Fault fault = fault_of(transfer);
    if (fault.what == Fault::What::duplicate) inbox.push_back({from, carrier, message});
    if (fault.what == Fault::What::drop) message = {};
    if (fault.what == Fault::What::delay) {
        transfer.faulty = false;
        if (transfer.kind != EventKind::load) transfer.message = messages.add(std::move(message));
        message = {};
        add_timer({.time = now_ + fault.late, .carrier = carrier});
    }
    inbox.push_back({from, carrier, std::move(message)});
}

/// What a load of sums, or a reduce, brought.
void Endpoint::add_sum(const Train& train, Ps visible) {
    if (train.sum == kNoSum) return;
    const Transfer& transfer = fabric_->transfer(train.transfer);
    hub_->add_sum({transfer.target.into, stretch_of(train), train.answers, visible},
                  fabric_->sums()[train.sum], fault_of(transfer));
    fabric_->sums().forget(train.sum);
}

void Endpoint::complete(const Train& train) {
    Transfer& transfer = fabric_->transfer(train.transfer);
    transfer.completed += Bytes{train.answers} * train.bytes;
    if (train.kind == EventKind::ack && !transfer.from_sm && transfer.kind != EventKind::meet)
        memory_reads(static_cast<double>(train.bytes) * train.answers / fabric_->answers(transfer));
    if (transfer.completed != transfer.bytes * fabric_->answers(transfer)) return;
    transfer.completed_at = now_;
    if (transfer.answered != kNoCounter) increase(transfer.answered);
}

/// What a load finds here. Rows that lie in memory are written once, so that they may be copied
/// when the load is through.
SumId Endpoint::read(const Train& request) {
    const Transfer& transfer = fabric_->transfer(request.transfer);
    if (transfer.message != kNoMessage && !fabric_->messages().written(transfer.message)) {
        throw std::logic_error(
            fmt::format("gpu {} reads rows that gpu {} has not yet written", request.src, id_));
    }
    if (recorder_ != nullptr && transfer.message != kNoMessage && request.index == 0) {
        const RowTarget& range = transfer.target;
        const auto rows = fabric_->messages().rows(transfer.message);
        recorder_->rows.found(request.transfer, transfer,
                              range.tag == 0 ? rows : rows.subspan(range.row, range.tag), now_);
    }
    if (transfer.target.region == kNoRegion) return kNoSum;
    return fabric_->sums().add(hub_->read_sum(transfer.target.region, stretch_of(request)));
}

/// Which bytes of its target's region a train is about.
RowStretch Endpoint::stretch_of(const Train& train) const {
    const RowTarget& target = fabric_->transfer(train.transfer).target;
    const bool stays = train.kind == EventKind::reduce && to_self(train);
    const Bytes size =
        stays ? largest_to_self() : fabric_->train_bytes(fabric_->wire_of_uplink(train.plane));
    return {target.row, target.offset + train.index * size, Bytes{train.bytes}};
}

void Endpoint::respond(const Train& request, EventKind kind, Ps latency, std::uint16_t packets,
                       SumId sum) {
    const Topology& topology = fabric_->topology();
    if (to_self(request)) {
        Train& answer =
            fabric_->push(topology.gpu(id_), request, now_ + latency, topology.gpu(id_));
        answer.kind = kind;
        answer.sum = sum;
        return;
    }
    const std::uint32_t uplink = topology.mesh && topology.same_node(id_, request.src)
                                     ? topology.uplink(id_, request.src, 0)
                                     : request.plane;
    const Wire& wire = fabric_->wire_of_uplink(uplink);
    const Bytes bytes = Bytes{request.bytes} * (packets / request.packets);
    const std::uint16_t flits = wire.flits(kind, bytes, packets, 0);
    // An acknowledgement that costs nothing on the wire goes straight to whom it concerns.
    const bool free = flits == 0;
    if (free && request.merge) return;  // the switch has answered them all
    const bool multicast = request.multicast;
    const bool merge = request.merge;
    Train& answer = free ? fabric_->push(topology.gpu(request.src), request,
                                         now_ + latency + 2 * wire.latency, topology.gpu(id_))
                         : fabric_->answer(id_, uplink, now_ + latency);
    answer.transfer = request.transfer;
    answer.index = request.index;
    answer.bytes = request.bytes;
    answer.hold = kNoPool;
    answer.flits = flits;
    answer.packets = packets;
    answer.src = id_;
    answer.dst = request.src;
    answer.plane = static_cast<std::uint8_t>(uplink);
    answer.kind = kind;
    answer.phase = Phase::whole;
    answer.multicast = false;
    answer.gather = multicast;
    answer.merge = merge;
    answer.sum = sum;
    answer.answers = 1;
}

}  // namespace moehub::sim
