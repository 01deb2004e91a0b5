#include "systems/exchange.hpp"

namespace moehub::systems {
namespace {

std::uint64_t address(GpuId to, GpuId from) {
    return (std::uint64_t{to} << 40) + (std::uint64_t{from} << 32);
}

}  // namespace

AllToAll::AllToAll(Layer& layer, const char* name)
    : layer_(layer), received_(layer.gpus(), std::vector<Buffer>(layer.gpus())) {
    for (std::uint32_t gpu = 0; gpu < layer.gpus(); ++gpu) {
        arrived_ = layer.endpoint(static_cast<GpuId>(gpu)).add_counter(name);
        answered_ = layer.endpoint(static_cast<GpuId>(gpu)).add_counter(name);
    }
}

/// A pair with nothing to say exchanges one flag, so that all know that they have everything.
Process AllToAll::exchange(GpuId gpu, std::vector<Buffer> buffers, Bytes bytes) {
    sim::Endpoint& endpoint = layer_.endpoint(gpu);
    const Communicating communicating(layer_.card(gpu));
    co_await endpoint.delay(layer_.input.machine.collective.launch);
    for (std::uint32_t i = 0; i < layer_.gpus(); ++i) {
        const auto peer = static_cast<GpuId>((gpu + i) % layer_.gpus());
        Buffer& buffer = buffers[peer];
        if (peer != gpu) {
            sim::Transfer transfer;
            transfer.dst = peer;
            transfer.bytes = std::max<Bytes>(1, bytes * static_cast<Bytes>(buffer.size()));
            transfer.address = address(peer, gpu);
            transfer.arrived = arrived_;
            transfer.answered = answered_;
            endpoint.post(transfer);
        }
        received_[peer][gpu] = std::move(buffer);
    }
    co_await endpoint.until(arrived_, layer_.gpus() - 1);
    co_await endpoint.until(answered_, layer_.gpus() - 1);
}

CountExchange::CountExchange(Layer& layer) : layer_(layer) {
    for (std::uint32_t gpu = 0; gpu < layer.gpus(); ++gpu) {
        arrived_ = layer.endpoint(static_cast<GpuId>(gpu)).add_counter("counts of a peer");
    }
}

Process CountExchange::exchange(GpuId gpu, Bytes bytes) {
    sim::Endpoint& endpoint = layer_.endpoint(gpu);
    const Communicating communicating(layer_.card(gpu));
    co_await endpoint.delay(layer_.input.machine.collective.launch);
    for (std::uint32_t i = 1; i < layer_.gpus(); ++i) {
        const auto peer = static_cast<GpuId>((gpu + i) % layer_.gpus());
        sim::Transfer transfer;
        transfer.dst = peer;
        transfer.bytes = bytes;
        transfer.address = address(peer, gpu);
        transfer.arrived = arrived_;
        endpoint.post(transfer);
    }
    co_await endpoint.until(arrived_, layer_.gpus() - 1);
}

}  // namespace moehub::systems
