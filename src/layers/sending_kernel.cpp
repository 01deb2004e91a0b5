#include "layers/sending_kernel.hpp"

#include "base/portable_math.hpp"
#include "sim/gpu/row_copy.hpp"

#include <algorithm>
#include <cmath>

namespace moehub::layers {
namespace {

constexpr std::int64_t kAtOnce = 4;  ///< rows that the warps of an SM work on together

/// What the SMs of one kernel share.
struct Kernel {
    MoeLayer& layer;
    GpuId gpu;
    Sending sending;
    std::function<int(std::int64_t)> store;
    sim::CounterId done;
    double missed = 0;        ///< of a row's bytes, from HBM
    std::int64_t next = 0;    ///< row
    std::int64_t posted = 0;  ///< stores that tell
    std::int64_t before = 0;  ///< of the GPU's count, when the kernel began
};

Ps time_of(const Kernel& kernel, std::int64_t rows) {
    const RowCopy row{kernel.sending.read, kernel.missed, kernel.sending.stored};
    const double seconds = row_copy_seconds(kernel.layer.input.machine.gpu.kernels, row);
    return std::llround(static_cast<double>(rows) * seconds * 1e12);
}

/// One SM: a few rows, and the next when the hub has room for them. Two sets are underway.
Process run_sm(Kernel& kernel) {
    sim::Endpoint& endpoint = kernel.layer.endpoint(kernel.gpu);
    sim::Card& card = kernel.layer.card(kernel.gpu);
    std::int64_t last = 0;    // stores posted up to this SM's last set
    std::int64_t before = 0;  // and up to the one before
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
