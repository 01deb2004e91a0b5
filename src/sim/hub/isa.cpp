#include "sim/hub/isa.hpp"

namespace moehub::sim {
namespace {

constexpr Bytes kFlagBytes = 16;

/// A transfer of a row, or of what follows it. The switch is chosen by what identifies a line: its
/// region, row and offset.
Transfer transfer_to(const MallocId& to, std::uint32_t row, Bytes bytes) {
    const std::uint64_t place = row * static_cast<std::uint64_t>(bytes);
    return {.dst = to.gpu,
            .from_sm = true,
            .bytes = bytes,
            .address = (std::uint64_t{to.gpu} << 48) + (std::uint64_t{to.region} << 40) + place,
            .target = {.region = to.region, .row = row}};
}

Transfer row_transfer(const RowStore& row) {
    Transfer transfer = transfer_to(row.to, row.row_id, row.bytes);
    transfer.answered = row.answered;
    transfer.told = true;
    transfer.target.allocate = true;
    transfer.target.numbers = row.numbers;
    return transfer;
}

}  // namespace

void store_row(Endpoint& gpu, const RowStore& row) {
    gpu.post(row_transfer(row));
}

void store_source(Endpoint& gpu, const RowStore& row, std::uint64_t source) {
    Transfer transfer = row_transfer(row);
    transfer.bytes = kSourceColumn;
    transfer.told = false;  // the row's answer is enough
    transfer.address += static_cast<std::uint64_t>(row.bytes);
    transfer.target.offset = static_cast<std::uint32_t>(row.bytes);
    transfer.target.low_priority = true;
    transfer.target.tag = source;
    gpu.post(transfer);
}

void store_row_and_source(Endpoint& gpu, const RowStore& row, std::uint64_t source) {
    Transfer transfer = row_transfer(row);
    transfer.bytes += kSourceColumn;
    transfer.target.tag = source;
    gpu.post(transfer);
}

void store(Endpoint& gpu, const PlainStore& row) {
    Transfer transfer = transfer_to(row.to, row.row, row.bytes);
    transfer.arrived = row.arrived;
    transfer.answered = row.answered;
    transfer.target.numbers = row.numbers;
    gpu.post(transfer);
}

void store_flag(Endpoint& gpu, GpuId to, CounterId arrived) {
    gpu.post({.dst = to,
              .from_sm = true,
              .bytes = kFlagBytes,
              .address = (std::uint64_t{to} << 48) + std::uint64_t{arrived} * 128,
              .arrived = arrived});
}

AllReady::AllReady(Fabric& fabric) : fabric_(fabric) {
    for (std::uint32_t gpu = 0; gpu < fabric.topology().gpus; ++gpu) {
        acknowledged_ = fabric.gpu(gpu).add_counter("acknowledged rows");
        senders_done_ = fabric.gpu(gpu).add_counter("GPUs that have sent everything");
        reached_ = fabric.gpu(gpu).add_counter("AllReady");
    }
}

void AllReady::start(GpuId gpu, std::int64_t stores) {
    fabric_.gpu(gpu).spawn("hub: AllReady to all", announce(gpu, stores));
    fabric_.gpu(gpu).spawn("hub: AllReady from all", watch(gpu));
}

Process AllReady::announce(GpuId gpu, std::int64_t stores) {
    Endpoint& endpoint = fabric_.gpu(gpu);
    const std::uint32_t gpus = fabric_.topology().gpus;
    co_await endpoint.until(acknowledged_, stores);
    for (std::uint32_t i = 0; i < gpus; ++i)
        store_flag(endpoint, static_cast<GpuId>((gpu + i) % gpus), senders_done_);
}

Process AllReady::watch(GpuId gpu) {
    Endpoint& endpoint = fabric_.gpu(gpu);
    co_await endpoint.until(senders_done_, fabric_.topology().gpus);
    co_await endpoint.delay(fabric_.machine().moe_hub.ready_latency);
    endpoint.hub()->all_ready();
    endpoint.increase(reached_);
}

}  // namespace moehub::sim
