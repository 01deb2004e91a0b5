#include "layers/mail.hpp"

#include "base/portable_math.hpp"
#include "sim/gpu/memory_ops.hpp"

#include <algorithm>
#include <map>
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

constexpr std::int64_t kAtOnce = 4;  ///< rows that the warps of an SM work on together

/// What the SMs of one kernel share.
struct Kernel {
    MoeLayer& layer;
    GpuId gpu;
    Sending sending;
    std::function<int(std::int64_t)> store;
    sim::CounterId done;
    double missed = 0;        ///< share of a row's bytes that is read from HBM
    std::int64_t next = 0;    ///< row
    std::int64_t posted = 0;  ///< stores that tell
    std::int64_t before = 0;  ///< GPU's count of stores when the kernel began
};

Ps time_of(const Kernel& kernel, std::int64_t rows) {
    const RowCopy row{kernel.sending.read, kernel.missed, kernel.sending.stored};
    const double seconds = row_copy_seconds(kernel.layer.input.machine.gpu.kernels, row);
    return to_ps(static_cast<double>(rows) * seconds);
}

/// One SM: a few rows, and the next when the hub has room for them. Two sets are underway.
Process run_sm(Kernel& kernel) {
    sim::Endpoint& endpoint = kernel.layer.endpoint(kernel.gpu);
    sim::Card& card = kernel.layer.card(kernel.gpu);
    std::int64_t last = 0;    // stores posted up to this SM's last set
    std::int64_t before = 0;  // stores posted up to the set before that
    while (kernel.next < kernel.sending.rows) {
        const std::int64_t first = kernel.next;
        kernel.next = std::min(kernel.sending.rows, first + kAtOnce);
        const std::int64_t rows = kernel.next - first;
        card.hbm.take(static_cast<double>(rows) * kernel.missed * kernel.sending.read);
        co_await endpoint.delay(time_of(kernel, rows));
        co_await endpoint.until(endpoint.stores(), kernel.before + before);
        for (std::int64_t row = first; row < first + rows; ++row)
            kernel.posted += kernel.store(row);
        before = last;
        last = kernel.posted;
    }
    co_await endpoint.until(endpoint.stores(), kernel.before + last);
    card.blocks.release(1, KernelName::dispatch);
    endpoint.increase(kernel.done);
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
    sim::Transfer transfer{.dst = letter.to,
                           .from_sm = letter.from_sm,
                           .told = letter.told,
                           .bytes = letter.bytes,
                           .arrived = counter(letter.channel),
                           .answered = acknowledged_};
    if (!message.rows.empty() || !message.counts.empty())
        transfer.message = gpus_.fabric.messages().add(std::move(message));
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
        if (load.rows && !messages.written(message))
            throw std::logic_error("a GPU reads rows that it has not yet written");
        sim::Message own =
            load.rows ? messages.part(message, load.range.first, load.range.count) : sim::Message{};
        sim::Endpoint& endpoint = gpus_.endpoint(reader);
        endpoint.spawn("copy in memory", copy(endpoint, arrived, std::move(own), load.bytes));
        return;
    }
    post({.kind = sim::EventKind::load,
          .dst = load.from,
          .bytes = load.bytes,
          .arrived = arrived,
          .message = message,
          .target = {.row = load.range.first, .tag = load.range.count}},
         reader);
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
    for (const sim::Received& some : messages_under(gpu, arrived))
        rows.insert(rows.end(), some.message.rows.begin(), some.message.rows.end());
    return rows;
}

Process meet(Gpus& gpus, Mail& mail, GpuId gpu, std::size_t channel, Bytes bytes) {
    for (std::uint32_t step = 1; step < gpus.count(); ++step)
        mail.send(gpu, static_cast<GpuId>((gpu + step) % gpus.count()), channel, {}, bytes);
    co_await mail.arrived(gpu, channel, gpus.count() - 1);
}

PulledRows::PulledRows(MoeLayer& layer, const RowCounts& counts, const char* name)
    : layer_(layer), counts_(counts), mail_(layer.gpus, name, 0) {}

std::uint64_t PulledRows::key_of(GpuId reader, int expert) const {
    return std::uint64_t{reader} * static_cast<std::uint64_t>(layer_.input.model.experts) +
           static_cast<std::uint64_t>(expert);
}

void PulledRows::offer(GpuId gpu, const std::vector<Rows>& by_peer) {
    for (std::size_t peer = 0; peer < by_peer.size(); ++peer) {
        std::map<int, Rows> by_expert;
        for (const CarriedRow& row : by_peer[peer]) by_expert[row.expert].push_back(row);
        for (auto& [expert, rows] : by_expert)
            mail_.offer(gpu, key_of(static_cast<GpuId>(peer), expert), std::move(rows));
    }
}

std::int64_t PulledRows::pull(GpuId reader, const Block& block) {
    std::int64_t loads = 0;
    std::int64_t before = 0;  // rows of earlier sources
    for (const GpuId from : layer_.gpus.all()) {
        const std::int64_t here = counts_.rows(reader, from, block.expert);
        const std::int64_t first = std::max<std::int64_t>(block.rows.first - before, 0);
        const std::int64_t last = std::min(here, block.rows.first + block.rows.count - before);
        before += here;
        if (first >= last) continue;
        Mail::Load load{.from = from, .key = key_of(reader, block.expert)};
        load.range = {static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(last - first)};
        load.bytes = (last - first) * block.bytes;
        mail_.fetch_under(reader, block.arrived, load);
        ++loads;
    }
    return loads;
}

/// As a gather's reads of rows that were read before (memory_ops.cpp).
double missed_in_l2(const Gpu& gpu, double table) {
    const double kept = gpu.kernels.l2_resident * static_cast<double>(gpu.l2_capacity);
    return table > 0 ? portable_exp(-kept / (2 * table)) : 0;
}

Process run_sending(MoeLayer& layer, GpuId gpu, Sending sending,
                    std::function<int(std::int64_t)> store) {
    sim::Endpoint& endpoint = layer.endpoint(gpu);
    const sim::CounterId done = endpoint.add_counter("SMs that send rows");
    Kernel kernel{layer, gpu, sending, std::move(store), done};
    kernel.missed = missed_in_l2(layer.input.machine.gpu, sending.table);
    kernel.before = endpoint.value(endpoint.stores());
    const int most = std::min(sending.sms, layer.card(gpu).gpu.sms);
    const int sms = static_cast<int>(std::min<std::int64_t>(most, sending.rows));
    layer.card(gpu).blocks.hold(sms, KernelName::dispatch);
    for (int sm = 0; sm < sms; ++sm) endpoint.spawn("SM that sends rows", run_sm(kernel));
    co_await endpoint.until(done, sms);
    endpoint.drop_counter(done);
}

Process send_messages(MoeLayer& layer, Mail& mail, GpuId gpu, std::vector<Outgoing> messages) {
    std::vector<std::size_t> ends;  // by message: behind its last row
    double bytes = 0;
    for (const Outgoing& one : messages) {
        ends.push_back((ends.empty() ? 0 : ends.back()) + one.rows.size());
        bytes += static_cast<double>(one.bytes);
    }
    const std::size_t rows = ends.empty() ? 0 : ends.back();
    Sending sending;
    sending.sms = layer.system.sending_sms;
    sending.rows = static_cast<std::int64_t>(rows);
    sending.read = rows == 0 ? 0 : bytes / static_cast<double>(rows);
    sending.stored = sending.read;
    sending.table = static_cast<double>(layer.tokens(gpu) * layer.row_bytes());
    std::size_t next = 0;  // message
    const auto send_up_to = [&](std::size_t row) {
        int told = 0;
        for (; next < messages.size() && ends[next] <= row; ++next, ++told) {
            Outgoing& one = messages[next];
            mail.store_told(gpu, one.to, one.channel, std::move(one.rows), one.bytes);
        }
        return told;
    };
    if (rows == 0) {  // flags alone: no kernel waits for them
        for (Outgoing& one : messages) mail.store(gpu, one.to, one.channel, {}, one.bytes);
        co_return;
    }
    std::size_t stored = 0;  // rows
    std::function<int(std::int64_t)> store = [&](std::int64_t) { return send_up_to(++stored); };
    co_await run_sending(layer, gpu, sending, store);
}

}  // namespace moehub::layers
