#include "systems/mail.hpp"

#include <algorithm>
#include <stdexcept>

namespace moehub::systems {

Mail::Mail(Layer& layer, const char* name, std::size_t channels)
    : layer_(layer),
      inbox_(layer.gpus(), std::vector<Inbox>(channels)),
      sent_(layer.gpus()),
      posted_(layer.gpus()) {
    for (std::uint32_t gpu = 0; gpu < layer.gpus(); ++gpu) {
        sim::Endpoint& endpoint = layer.endpoint(static_cast<GpuId>(gpu));
        const sim::CounterId arrived = endpoint.add_counters(name, channels);
        acknowledged_ = endpoint.add_counter(name);
        if (gpu > 0 && arrived != arrived_) {
            throw std::logic_error("mail needs the same counters on all GPUs: make it first");
        }
        arrived_ = arrived;
    }
}

/// Messages lie one after the other, so that they use all links.
void Mail::post(const sim::Transfer& wanted, GpuId poster, std::size_t channel) {
    sim::Transfer transfer = wanted;
    transfer.bytes = std::max<Bytes>(1, transfer.bytes);
    transfer.address = (std::uint64_t{poster} << 40) + posted_[poster];
    transfer.arrived = counter(channel);
    const auto line = static_cast<std::uint64_t>(layer_.fabric.link().payload);
    posted_[poster] += (static_cast<std::uint64_t>(transfer.bytes) + line - 1) / line * line;
    layer_.endpoint(poster).post(transfer);
}

void Mail::send(GpuId from, GpuId to, std::size_t channel, Buffer rows, Bytes bytes) {
    inbox_[to][channel].emplace_back(from, std::move(rows));
    if (from == to) {
        layer_.endpoint(to).increase(counter(channel));
        return;
    }
    sim::Transfer transfer;
    transfer.dst = to;
    transfer.bytes = bytes;
    transfer.answered = acknowledged_;
    ++sent_[from];
    post(transfer, from, channel);
}

void Mail::fetch(GpuId reader, GpuId from, std::size_t channel, Buffer rows, Bytes bytes) {
    inbox_[reader][channel].emplace_back(from, std::move(rows));
    if (from == reader) {
        layer_.endpoint(reader).increase(counter(channel));
        return;
    }
    sim::Transfer transfer;
    transfer.kind = sim::Kind::load;
    transfer.dst = from;
    transfer.bytes = bytes;
    post(transfer, reader, channel);
}

sim::Endpoint::Until Mail::arrived(GpuId gpu, std::size_t channel, std::int64_t messages) {
    return layer_.endpoint(gpu).until(counter(channel), messages);
}

sim::Endpoint::Until Mail::acknowledged(GpuId gpu, std::int64_t messages) {
    return layer_.endpoint(gpu).until(acknowledged_, messages);
}

Buffer Mail::take(GpuId gpu, std::size_t channel) {
    Inbox& inbox = inbox_[gpu][channel];
    std::stable_sort(inbox.begin(), inbox.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    Buffer rows;
    for (auto& [sender, some] : inbox) rows.insert(rows.end(), some.begin(), some.end());
    inbox.clear();
    return rows;
}

Process meet(Layer& layer, Mail& mail, GpuId gpu, std::size_t channel, Bytes bytes) {
    for (std::uint32_t step = 1; step < layer.gpus(); ++step) {
        mail.send(gpu, static_cast<GpuId>((gpu + step) % layer.gpus()), channel, {}, bytes);
    }
    co_await mail.arrived(gpu, channel, layer.gpus() - 1);
}

}  // namespace moehub::systems
