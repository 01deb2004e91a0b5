#include "layers/mail.hpp"

#include <algorithm>
#include <stdexcept>
#include <tuple>

namespace moehub::layers {
namespace {

/// A GPU fetches from itself.
Process copy(sim::Endpoint& endpoint, sim::CounterId arrived, sim::Message message, Bytes bytes) {
    const Ps done = endpoint.copy_in_memory(bytes);
    co_await endpoint.delay(done - endpoint.now());
    endpoint.keep(arrived, std::move(message));
}

}  // namespace

Mail::Mail(Gpus& gpus, const char* name, std::size_t channels)
    : gpus_(gpus),
      arrived_(gpus.add_counters(name, channels)),
      acknowledged_(gpus.add_counter(name)),
      sent_(gpus.count()),
      posted_(gpus.count()),
      offers_(gpus.count()) {}

/// Messages lie one after the other, so that they use all links.
void Mail::post(const sim::Transfer& wanted, GpuId poster) {
    sim::Transfer transfer = wanted;
    transfer.bytes = std::max<Bytes>(1, transfer.bytes);
    transfer.address = (std::uint64_t{poster} << 40) + posted_[poster];
    const auto line = static_cast<std::uint64_t>(gpus_.fabric.link().payload);
    posted_[poster] += (static_cast<std::uint64_t>(transfer.bytes) + line - 1) / line * line;
    gpus_.endpoint(poster).post(transfer);
}

void Mail::send_message(GpuId from, const Letter& letter, sim::Message message) {
    sim::Transfer transfer;
    transfer.dst = letter.to;
    transfer.bytes = letter.bytes;
    transfer.from_sm = letter.from_sm;
    transfer.told = letter.told;
    transfer.arrived = counter(letter.channel);
    transfer.answered = acknowledged_;
    if (!message.rows.empty() || !message.counts.empty()) {
        transfer.message = gpus_.fabric.messages().add(std::move(message));
    }
    ++sent_[from];
    post(transfer, from);
}

void Mail::send(GpuId from, GpuId to, std::size_t channel, Rows rows, Bytes bytes) {
    send_message(from, {.to = to, .channel = channel, .bytes = bytes}, {std::move(rows), {}});
}

void Mail::store(GpuId from, GpuId to, std::size_t channel, Rows rows, Bytes bytes) {
    send_message(from, {to, channel, bytes, true, false}, {std::move(rows), {}});
}

void Mail::store_told(GpuId from, GpuId to, std::size_t channel, Rows rows, Bytes bytes) {
    send_message(from, {to, channel, bytes, true, true}, {std::move(rows), {}});
}

void Mail::tell(GpuId from, GpuId to, std::size_t channel, std::vector<std::int64_t> counts,
                Bytes bytes) {
    send_message(from, {.to = to, .channel = channel, .bytes = bytes}, {{}, std::move(counts)});
}

/// A key has its memory from the first time that somebody names it.
sim::MessageId Mail::offered(GpuId from, std::uint64_t key) {
    const auto [found, added] = offers_[from].try_emplace(key, sim::kNoMessage);
    if (added) found->second = gpus_.fabric.messages().reserve();
    return found->second;
}

void Mail::offer(GpuId from, std::uint64_t key, Rows rows) {
    gpus_.fabric.messages().write(offered(from, key), {std::move(rows), {}});
}

void Mail::fetch(GpuId reader, std::size_t channel, const Load& load) {
    fetch_under(reader, counter(channel), load);
}

void Mail::fetch_under(GpuId reader, sim::CounterId arrived, const Load& load) {
    const sim::MessageId message = load.rows ? offered(load.from, load.key) : sim::kNoMessage;
    if (load.from == reader) {
        sim::MessageStore& messages = gpus_.fabric.messages();
        if (load.rows && !messages.written(message)) {
            throw std::logic_error("a GPU reads rows that it has not yet written");
        }
        sim::Message own =
            load.rows ? messages.part(message, load.range.first, load.range.count) : sim::Message{};
        sim::Endpoint& endpoint = gpus_.endpoint(reader);
        endpoint.spawn("copy in memory", copy(endpoint, arrived, std::move(own), load.bytes));
        return;
    }
    sim::Transfer transfer;
    transfer.kind = sim::Kind::load;
    transfer.dst = load.from;
    transfer.bytes = load.bytes;
    transfer.arrived = arrived;
    transfer.message = message;
    transfer.target.row = load.range.first;
    transfer.target.tag = load.range.count;
    post(transfer, reader);
}

sim::Endpoint::Until Mail::arrived(GpuId gpu, std::size_t channel, std::int64_t messages) {
    return gpus_.endpoint(gpu).until(counter(channel), messages);
}

sim::Endpoint::Until Mail::acknowledged(GpuId gpu, std::int64_t messages) {
    return gpus_.endpoint(gpu).until(acknowledged_, messages);
}

std::vector<sim::Received> Mail::messages_under(GpuId gpu, sim::CounterId arrived) {
    std::vector<sim::Received> messages = gpus_.endpoint(gpu).take(arrived);
    std::stable_sort(messages.begin(), messages.end(), [](const auto& a, const auto& b) {
        return std::tie(a.from, a.carrier) < std::tie(b.from, b.carrier);
    });
    return messages;
}

Rows Mail::rows_under(GpuId gpu, sim::CounterId arrived) {
    Rows rows;
    for (const sim::Received& some : messages_under(gpu, arrived)) {
        rows.insert(rows.end(), some.message.rows.begin(), some.message.rows.end());
    }
    return rows;
}

Process meet(Gpus& gpus, Mail& mail, GpuId gpu, std::size_t channel, Bytes bytes) {
    for (std::uint32_t step = 1; step < gpus.count(); ++step) {
        mail.send(gpu, static_cast<GpuId>((gpu + step) % gpus.count()), channel, {}, bytes);
    }
    co_await mail.arrived(gpu, channel, gpus.count() - 1);
}

}  // namespace moehub::layers
